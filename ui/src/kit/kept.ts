// Input of a form: kept in the tab until it is sent or cancelled, over reloads as well.
import { useState } from "react";

/** Input kept for the form with this key; missing values come from `initial`. */
export function loadKept<T extends object>(key: string, initial: T): T {
  try {
    const stored = JSON.parse(sessionStorage.getItem(key) ?? "{}") as Partial<T>;
    // An invalid number became `null`.
    const typed = Object.entries(stored).filter(([, value]) => value !== null);
    return { ...initial, ...Object.fromEntries(typed) };
  } catch {
    return initial;
  }
}

/** Keeps what was typed; `null` forgets it. */
export function keep(key: string, values: object | null): void {
  try {
    if (values) sessionStorage.setItem(key, JSON.stringify(values));
    else sessionStorage.removeItem(key);
  } catch {
    // Storage is refused: what is typed lives as long as the form.
  }
}

/** The values of a form, how to change some, and how to forget all. */
export function useKept<T extends object>(
  key: string,
  initial: T,
): [values: T, change: (some: Partial<T>) => void, forget: () => void] {
  const [values, setValues] = useState(() => loadKept(key, initial));
  const change = (some: Partial<T>) =>
    setValues((was) => {
      const next = { ...was, ...some };
      keep(key, next);
      return next;
    });
  return [values, change, () => keep(key, null)];
}
