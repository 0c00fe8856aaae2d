// Columns of a list: which are shown, their order and their widths.
import { useMemo } from "react";

import type { Column } from "../kit/grid/columns";
import { useStored } from "../api/stored";

const WIDTH_MIN = 48;
const WIDTH_MAX = 800;

/** The ids of the columns that are shown where nothing is chosen. */
export function usual<T>(columns: Column<T>[]): string[] {
  return columns.filter(({ isExtra }) => !isExtra).map(({ id }) => id);
}

/** The columns of these ids, in this order; the first one of all always comes first. */
export function pickColumns<T>(columns: Column<T>[], ids: string[]): Column<T>[] {
  const [first] = columns;
  const others = ids.flatMap((id) => columns.find((column) => column.id === id) ?? []);
  return first ? [first, ...others.filter((column) => column !== first)] : [];
}

/** The ids with one moved by so many places; the first one stays where it is. */
export function moveColumn(ids: string[], id: string, places: number): string[] {
  const from = ids.indexOf(id);
  const to = Math.min(ids.length - 1, from + places);
  if (from < 1 || to < 1) return ids;
  return ids.toSpliced(from, 1).toSpliced(to, 0, id);
}

export interface ChosenColumns<T> {
  columns: Column<T>[];
  /** Changes the order, by the ids. */
  ids: string[];
  /** Keeps other ones, by their ids; the usual ones without. */
  keep: (ids: string[] | undefined) => void;
  resize: (column: Column<T>, pixels: number) => void;
}

/** The columns of the address, or else those that this browser keeps for the list, with their widths. */
export function useColumns<T>(
  label: string,
  all: Column<T>[],
  chosen: string[] | undefined,
): ChosenColumns<T> {
  const [widths, setWidths] = useStored<Record<string, number>>(`elastane-widths-${label}`, {});
  const [kept, setKept] = useStored<string[] | null>(`elastane-columns-${label}`, null);
  const key = (chosen ?? kept)?.join(",");
  const columns = useMemo(
    () =>
      pickColumns(all, key?.split(",") ?? usual(all)).map((column) => {
        const width = widths[column.id];
        if (typeof width !== "number") return column;
        // A width that the user chose is fixed.
        const { grows: _grows, least: _least, ...fixed } = column;
        return { ...fixed, width };
      }),
    [all, key, widths],
  );
  const resize = (column: Column<T>, pixels: number) => {
    const drawn = "size" in column && typeof column.size === "number" ? column.size : column.width;
    const width = Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, drawn + pixels));
    setWidths({ ...widths, [column.id]: width });
  };
  const keep = (next: string[] | undefined) => setKept(next ?? null);
  return { columns, ids: columns.map(({ id }) => id), keep, resize };
}
