// The newest value, at most each so many milliseconds: also while it changes all the time.
import { useEffect, useState } from "react";

/**
 * Passes values on: the first at once, then the newest each `ms` milliseconds. What flaps is passed
 * on as well: a value that was left meanwhile comes before the return to the one before it.
 */
export class Throttle<T> {
  readonly #emit: (value: T) => void;
  readonly #ms: number;
  #passed: T;
  #newest: T;
  /** The newest value that is another than the one that was passed on. */
  #other: T | undefined;
  #last = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(first: T, emit: (value: T) => void, ms: number) {
    this.#passed = first;
    this.#newest = first;
    this.#emit = emit;
    this.#ms = ms;
  }

  push(value: T): void {
    this.#newest = value;
    if (value !== this.#passed) this.#other = value;
    if (this.#other === undefined || this.#timer !== undefined) return;
    const wait = this.#last + this.#ms - Date.now();
    if (wait <= 0) this.#pass(this.#other);
    else this.#timer = setTimeout(() => this.#late(), wait);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #late(): void {
    this.#timer = undefined;
    if (this.#other !== undefined) this.#pass(this.#other);
    this.push(this.#newest);
  }

  #pass(value: T): void {
    this.#last = Date.now();
    this.#passed = value;
    this.#other = undefined;
    this.#emit(value);
  }
}

export function useThrottled(value: string, ms: number): string {
  const [passed, setPassed] = useState(value);
  const [throttle] = useState(() => new Throttle<string>(value, setPassed, ms));
  useEffect(() => throttle.push(value), [throttle, value]);
  useEffect(() => () => throttle.end(), [throttle]);
  return passed;
}
