// Light or dark: the reader's choice, else that of the system.

import { Stored } from "../api/stored";

export type Theme = "light" | "dark" | "system";

const stored = new Stored("elastane-theme");
const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  const { text } = stored;
  return text === "light" || text === "dark" ? text : "system";
}

export function applyTheme(): void {
  const chosen = theme();
  const isDark = chosen === "dark" || (chosen === "system" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

export function chooseTheme(next: Theme): void {
  stored.text = next;
  applyTheme();
}

dark.addEventListener("change", applyTheme);
