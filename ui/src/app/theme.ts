// Light or dark: the reader's choice, else that of the system.

const STORED = "elastane-theme";
export type Theme = "light" | "dark" | "system";

const dark = matchMedia("(prefers-color-scheme: dark)");
/** The choice in this tab, where storage is refused. */
let memory: Theme = "system";

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return memory;
  }
}

export function applyTheme(): void {
  const chosen = theme();
  const isDark = chosen === "dark" || (chosen === "system" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

export function chooseTheme(next: Theme): void {
  memory = next;
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // Storage is refused: the choice lives as long as the tab.
  }
  applyTheme();
}

dark.addEventListener("change", applyTheme);
