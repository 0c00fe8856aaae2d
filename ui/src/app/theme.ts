// Light or dark: the reader's choice, else that of the system.

const STORED = "elastane-theme";
export type Theme = "light" | "dark" | "system";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme(): Theme {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(): void {
  const chosen = theme();
  const isDark = chosen === "dark" || (chosen === "system" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}

export function chooseTheme(next: Theme): void {
  try {
    localStorage.setItem(STORED, next);
  } catch {
    // Storage is refused: the choice cannot be kept.
  }
  applyTheme();
}

dark.addEventListener("change", applyTheme);
