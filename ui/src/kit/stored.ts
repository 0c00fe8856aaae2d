// Choices of a reader for a list, kept in the browser: widths of columns, saved views.
import { useState } from "react";

/** A value under a key of the browser's storage, and how to change it. */
export function useStored<T>(key: string, initial: T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      return (JSON.parse(localStorage.getItem(key) ?? "null") as T | null) ?? initial;
    } catch {
      return initial;
    }
  });
  const change = (next: T) => {
    setValue(next);
    try {
      localStorage.setItem(key, JSON.stringify(next));
    } catch {
      // Storage is refused: it lives as long as the page.
    }
  };
  return [value, change];
}
