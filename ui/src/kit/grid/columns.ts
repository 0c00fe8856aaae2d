// Columns of a grid, and which of them have room.

export interface Column<T> {
  id: string;
  name: string;
  /** Pixels; the column that `grows` takes what is left, and has at least these. */
  width: number;
  grows?: boolean;
  /** Pixels to which the column that `grows` is cut before it leaves; `width` if none are said. */
  least?: number;
  /** Columns leave by importance when there is no room: the largest number first. */
  rank: number;
  /** Numbers stand at the end. */
  isNumber?: boolean;
  /** The field to sort by; none where sorting makes no sense. */
  sort?: string;
  cell: (row: T) => React.ReactNode;
}

export interface Placed<T> extends Column<T> {
  start: number;
  size: number;
}

/** The columns that fit, with their places. What has no room is left out, the least important first. */
export function place<T>(columns: Column<T>[], room: number): Placed<T>[] {
  let kept = columns;
  const width = (of: Column<T>[]) => of.reduce((sum, column) => sum + column.width, 0);
  while (kept.length > 1 && width(kept) > room) {
    const last = Math.max(...kept.map((column) => column.rank));
    const leaving = kept.filter((column) => column.rank === last);
    const cut = leaving.reduce((sum, { width: all, least }) => sum + all - (least ?? all), 0);
    if (cut > 0 && width(kept) - cut <= room) break;
    kept = kept.filter((column) => column.rank < last);
  }
  const growing = kept.filter((column) => column.grows).length;
  const more = growing > 0 ? (room - width(kept)) / growing : 0;
  let start = 0;
  return kept.map((column) => {
    const size = column.width + (column.grows ? more : 0);
    const placed = { ...column, start, size };
    start += size;
    return placed;
  });
}
