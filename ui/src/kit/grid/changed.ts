// Marks the cells of a row whose text changed, so that they fade.
import { type RefObject, useLayoutEffect, useRef } from "react";

/** The text of a cell; that it is a minute later is no change. */
function textOf(cell: Element): string {
  let text = cell.textContent ?? "";
  for (const time of cell.querySelectorAll("time")) text = text.replace(time.textContent ?? "", "");
  return text;
}

/** To call with each drawing of a row; other columns are no change of it. */
export function useChanged(row: RefObject<HTMLElement | null>, columns: unknown): void {
  const before = useRef<{ columns: unknown; texts: string[] }>(undefined);
  useLayoutEffect(() => {
    const cells = [...(row.current?.children ?? [])] as HTMLElement[];
    const texts = cells.map(textOf);
    const known = before.current?.columns === columns ? before.current?.texts : undefined;
    before.current = { columns, texts };
    if (!known) return;
    for (const [at, cell] of cells.entries()) {
      if (texts[at] === known[at]) continue;
      cell.dataset.changed = cell.dataset.changed === "a" ? "b" : "a";
    }
  });
}
