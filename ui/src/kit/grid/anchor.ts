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
 * Places by which the rows moved that were seen: the middle one, as a row may also have moved by
 * itself. Undefined if none of them is there any more.
 */
export function movedBy(
  seen: Map<string, number>,
  rows: { id: string }[],
  from: number,
): number | undefined {
  const moves = rows.flatMap(({ id }, index) => {
    const place = seen.get(id);
    return place === undefined ? [] : [from + index - place];
  });
  return moves.toSorted((a, b) => a - b)[moves.length >> 1];
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
      const moved = movedBy(before.seen, rows, from) ?? 0;
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
