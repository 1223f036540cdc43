// The dialogs: password and confirmation.

import { byId, setText } from "./dom.js";

// Resolves with the result of `read` when the form is submitted, with null when the dialog is cancelled.
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

// Concurrent calls share one dialog and its result.
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
