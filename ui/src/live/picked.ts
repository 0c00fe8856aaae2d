// Rows picked in a grid: one by one, a range, or all that match.
import { useState } from "react";

import { idsOf } from "./client";

export interface Picked {
  ids: ReadonlySet<string>;
  /** Picks a row, or unpicks it. */
  toggle: (id: string) => void;
  /** Picks from the row that was picked last to this one, and no others. */
  extend: (from: string, to: string) => void;
  all: () => void;
  clear: () => void;
}

const NONE: ReadonlySet<string> = new Set();

/** Picked rows of a view; the worker knows the rows that are not on the screen. */
export function usePicked(view: number | undefined): Picked {
  const [ids, setIds] = useState(NONE);
  const [anchor, setAnchor] = useState<string>();
  const fromWorker = (pick: (order: string[]) => string[]) => {
    if (view !== undefined) void idsOf(view).then((order) => setIds(new Set(pick(order))));
  };
  return {
    ids,
    toggle: (id) => {
      const next = new Set(ids);
      if (!next.delete(id)) next.add(id);
      setIds(next);
      setAnchor(id);
    },
    extend: (from, to) => {
      const start = ids.size > 0 && anchor !== undefined ? anchor : from;
      setAnchor(start);
      fromWorker((order) => {
        const ends = [order.indexOf(start), order.indexOf(to)].toSorted((a, b) => a - b);
        return order.slice(Math.max(0, ends[0] ?? 0), (ends[1] ?? -1) + 1);
      });
    },
    all: () => fromWorker((order) => order),
    clear: () => setIds(NONE),
  };
}
