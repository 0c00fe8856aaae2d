// Keys that work on every page; letters only outside of inputs.
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";

import { Stored } from "../api/stored";

/** Keys that `?` lists. */
export const KEYS: [keys: string, what: string][] = [
  ["g o", "Overview"],
  ["g w", "Workloads"],
  ["g p", "Projects"],
  ["g n", "Nodes"],
  ["c t", "New training"],
  ["/", "Search in this list"],
  ["↑ ↓ j k", "Rows"],
  ["Enter", "Open the pane"],
  ["x, Space", "Pick a row"],
  ["Shift ↑ ↓", "Pick a range"],
  ["Ctrl A", "Pick all that match"],
  ["Shift ← →", "In the header: narrower, wider"],
  ["Alt ← →", "In the header: moves the column"],
  ["Esc", "Close"],
  ["s r Del", "Stop, run, delete a workload"],
  ["R", "Show new rows"],
];

const SEQUENCES: Record<string, string> = {
  go: "/overview",
  gw: "/workloads",
  gp: "/projects",
  gn: "/nodes",
  ct: "/workloads/new/training",
};

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

export function useKeys(onHelp: () => void): void {
  const [, navigate] = useLocation();
  const before = useRef("");
  useEffect(() => {
    const keyDown = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || takesText(event.target)) return;
      if (document.querySelector("[role=dialog], [role=alertdialog]")) return;
      if (!lettersAct()) return;
      const to = SEQUENCES[before.current + event.key];
      before.current = event.key;
      if (to) navigate(to);
      else if (event.key === "?") onHelp();
      else if (event.key === "/") document.querySelector<HTMLElement>("[type=search]")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", keyDown);
    return () => removeEventListener("keydown", keyDown);
  }, [navigate, onHelp]);
}
