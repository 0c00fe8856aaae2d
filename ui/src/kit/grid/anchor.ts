// Keeps the rows that are read in their place on the screen while others come and go above them.
import { type RefObject, useLayoutEffect, useRef } from "react";

interface Rows {
  rows: { id: string }[] | undefined;
  /** The place of the first of `rows` in the whole list. */
  from: number;
  /** Key of the order and of the filters: with another one the user reads other rows. */
  order: string | undefined;
  /** Pixels. */
  height: number;
}

interface Anchor {
  order: string | undefined;
  /** The rows on the screen with their places. */
  seen: Map<string, number>;
}

/**
 * Scrolls by the rows that came above. The returned function is `true` for the place to which it
 * scrolled itself.
 */
export function useAnchor(
  outer: RefObject<HTMLElement | null>,
  of: Rows,
): (top: number) => boolean {
  const anchor = useRef<Anchor>(undefined);
  const scrolled = useRef(-1);
  const { rows, from, order, height } = of;
  useLayoutEffect(() => {
    const element = outer.current;
    if (!element || !rows) return;
    const before = anchor.current;
    if (before && before.order === order && element.scrollTop > 0) {
      const at = rows.findIndex(({ id }) => before.seen.has(id));
      const place = at < 0 ? undefined : before.seen.get(rows[at]?.id ?? "");
      const moved = place === undefined ? 0 : from + at - place;
      if (moved !== 0) {
        element.scrollBy({ top: moved * height, behavior: "instant" });
        scrolled.current = element.scrollTop;
      }
    }
    const first = Math.floor(element.scrollTop / height);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / height);
    const seen = new Map<string, number>();
    for (const [index, { id }] of rows.entries()) {
      if (from + index >= first && from + index <= last) seen.set(id, from + index);
    }
    anchor.current = { order, seen };
  });
  return (top) => {
    const isOurs = top === scrolled.current;
    scrolled.current = -1;
    return isOurs;
  };
}
