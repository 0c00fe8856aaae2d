// Values kept in the browser's storage: the page secret, choices of the reader.
import { useState } from "react";

/** A text under a key of the browser's storage; where that is refused, it lives as long as the page. */
export class Stored {
  readonly key: string;
  /** What the storage did not take. */
  #refused: { text: string | null } | undefined;

  constructor(key: string) {
    this.key = key;
  }

  get text(): string | null {
    if (this.#refused) return this.#refused.text;
    try {
      return localStorage.getItem(this.key);
    } catch {
      return null;
    }
  }

  set text(next: string | null) {
    this.#refused = undefined;
    try {
      if (next === null) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, next);
    } catch {
      this.#refused = { text: next };
    }
  }
}

/** A value under a key of the browser's storage, and how to change it. */
export function useStored<T>(key: string, initial: T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      return (JSON.parse(new Stored(key).text ?? "null") as T | null) ?? initial;
    } catch {
      // Not written by us.
      return initial;
    }
  });
  const change = (next: T) => {
    setValue(next);
    new Stored(key).text = JSON.stringify(next);
  };
  return [value, change];
}
