// Light or dark: as the system wants it, until the user chooses; the choice is kept by the browser.

import { setText } from "./dom.js";

const CHOICES = ["system", "light", "dark"];
const STORE = "disque-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function kept() {
  try {
    return localStorage.getItem(STORE);
  } catch {
    return null; // a browser that keeps nothing
  }
}

function keep(choice) {
  try {
    localStorage.setItem(STORE, choice);
  } catch {
    // it holds as long as the page is open
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
