// Light or dark theme: that of the system, or the user's choice, which the browser stores.

import { setText } from "./dom.js";

const CHOICES = ["system", "light", "dark"];
const STORE = "disque-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(STORE);
  } catch {
    return null; // the browser has no storage
  }
}

function keep(choice) {
  try {
    localStorage.setItem(STORE, choice);
  } catch {
    // without storage, the choice is lost when the page is closed
  }
}

export function startTheme(button) {
  let choice = CHOICES.includes(kept()) ? kept() : CHOICES[0];
  const apply = () => {
    const isDark = choice === "dark" || (choice === "system" && dark.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    setText(button, `Theme: ${choice}`);
  };
  button.addEventListener("click", () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    keep(choice);
    apply();
  });
  dark.addEventListener("change", apply);
  apply();
}
