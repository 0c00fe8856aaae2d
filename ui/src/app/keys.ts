// Keys that work on every page; letters only outside of inputs.
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";

import { Stored } from "../api/stored";
import { KEYS } from "./key-table";
import { widenPane } from "./pane-width";

/** How much wider a key makes the pane, in pixels. */
const PANE_STEPS: Record<string, number> = { "[": -40, "]": 40 };

/** Longest time between the two letters of a key such as `g w`. */
const BETWEEN_MS_MAX = 1500;

/** A pane beside a list; as a page it has the whole width. */
const PANE = "main :not([data-page]) > section[aria-label^='Workload ']";

const stored = new Stored("elastane-letter-keys");

/** True if letters on their own act; users who dictate or lean on keys switch them off. */
export function lettersAct(): boolean {
  return stored.text !== "off";
}

export function setLettersAct(on: boolean): void {
  stored.text = on ? null : "off";
}

/** True if letters are typed into this element. */
export function takesText(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest("input, textarea, [contenteditable], [role=menu], [role=listbox]") !== null
  );
}

/** The first element of these that can be seen. */
function visible(selector: string): HTMLElement | undefined {
  return [...document.querySelectorAll<HTMLElement>(selector)].find((one) => one.checkVisibility());
}

/**
 * Gives an element the focus and presses it by the keyboard, so that a menu has the focus when it
 * opens; a tab takes a click. False if there is none.
 */
function press(selector: string): boolean {
  const found = visible(selector);
  found?.focus();
  if (found instanceof HTMLButtonElement) {
    for (const type of ["keydown", "keyup"]) {
      found.dispatchEvent(new KeyboardEvent(type, { key: "Enter", code: "Enter", bubbles: true }));
    }
  } else if (found && !takesText(found)) found.click();
  return found !== undefined;
}

export interface KeyActions {
  onHelp: () => void;
  onJump: () => void;
}

export function useKeys({ onHelp, onJump }: KeyActions): void {
  const [, navigate] = useLocation();
  const before = useRef({ key: "", at: 0 });
  useEffect(() => {
    /** Does what the letter means, alone or after the one before it. */
    const letter = (key: string): boolean => {
      const { key: first, at } = before.current;
      const typed = Date.now() - at < BETWEEN_MS_MAX ? first + key : key;
      before.current = { key, at: Date.now() };
      const row = KEYS.find((one) => one.typed === typed) ?? KEYS.find((one) => one.typed === key);
      const step = PANE_STEPS[key];
      if (row?.to) navigate(row.to);
      else if (row?.presses) return press(row.presses);
      else if (key === "?") onHelp();
      else if (step && visible(PANE)) widenPane(step);
      else return false;
      before.current = { key: "", at: 0 };
      return true;
    };
    const keyDown = (event: KeyboardEvent) => {
      if (document.querySelector("[role=dialog], [role=alertdialog]")) return;
      const { key, ctrlKey, metaKey, altKey } = event;
      const isJump = key === "k" && (ctrlKey || metaKey) && !altKey;
      if (isJump) onJump();
      else {
        // A list took the key: it begins no other.
        if (event.defaultPrevented) before.current = { key: "", at: 0 };
        if (ctrlKey || metaKey || altKey || event.defaultPrevented) return;
        if (takesText(event.target) || !lettersAct() || !letter(key)) return;
      }
      event.preventDefault();
    };
    widenPane(0);
    addEventListener("keydown", keyDown);
    return () => removeEventListener("keydown", keyDown);
  }, [navigate, onHelp, onJump]);
}
