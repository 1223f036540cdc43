// Two questions to the user: the password, and whether something is really meant.

import { byId, setText } from "./dom.js";

// Resolves with what `read` gives when the form is sent, with null when the dialog is closed otherwise.
function opened(dialog, read) {
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    let outcome = null;
    form.onsubmit = (event) => {
      event.preventDefault();
      outcome = read();
      dialog.close();
    };
    const no = form.querySelector("button[value=no]");
    if (no) no.onclick = () => dialog.close();
    dialog.onclose = () => resolve(outcome);
    dialog.showModal();
  });
}

let asking = null;

// Whoever asks while it is being asked gets the same answer.
export function askPassword(why) {
  setText(byId("password-note"), why);
  asking ??= opened(byId("password"), () => {
    const input = byId("password-input");
    const given = input.value;
    input.value = "";
    return given;
  }).finally(() => { asking = null; });
  return asking;
}

export async function confirmed(title, text, verb, danger = false) {
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  const yes = byId("confirm-yes");
  setText(yes, verb);
  yes.classList.toggle("danger", danger);
  yes.classList.toggle("main", !danger);
  return (await opened(byId("confirm"), () => true)) === true;
}
