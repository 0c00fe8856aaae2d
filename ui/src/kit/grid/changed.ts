// Marks the cells of a row whose text changed, so that they fade.
import { type RefObject, useLayoutEffect, useRef } from "react";

/** The text of a cell; that it is a minute later is no change. */
function textOf(cell: Element): string {
  let text = cell.textContent ?? "";
  for (const time of cell.querySelectorAll("time")) text = text.replace(time.textContent ?? "", "");
  return text;
}

/** How long a cell fades, as in the styles. */
const FADE_MS = 600;

interface Drawn {
  columns: unknown;
  texts: string[];
  /** When each cell began to fade. */
  fades: number[];
}

/**
 * To call with each drawing of a row; other columns are no change of it. A cell that changes while it
 * fades goes on: to begin again with each of many changes would be a cell that blinks.
 */
export function useChanged(row: RefObject<HTMLElement | null>, columns: unknown): void {
  const before = useRef<Drawn>(undefined);
  useLayoutEffect(() => {
    const cells = [...(row.current?.children ?? [])] as HTMLElement[];
    const texts = cells.map(textOf);
    const known = before.current?.columns === columns ? before.current : undefined;
    const fades = known?.fades ?? [];
    before.current = { columns, texts, fades };
    if (!known) return;
    for (const [at, cell] of cells.entries()) {
      if (texts[at] === known.texts[at]) continue;
      const now = performance.now();
      if (now - (fades[at] ?? -FADE_MS) < FADE_MS) continue;
      fades[at] = now;
      cell.dataset.changed = cell.dataset.changed === "a" ? "b" : "a";
    }
  });
}
