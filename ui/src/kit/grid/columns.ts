// Columns of a grid, and which of them have room.

/** How much wider a key or a click makes a column, in pixels. */
export const STEP = 16;

export interface Column<T> {
  id: string;
  name: string;
  /** Pixels; columns that `grow` take what is left, and have at least these. */
  width: number;
  /** Its share of what is left. */
  grows?: number;
  /** Least width in pixels of a column before it leaves; `width` if left out. */
  least?: number;
  /** Importance: without room the column with the largest number leaves first. */
  rank: number;
  /** The column is shown only if the user chose it. */
  isExtra?: boolean;
  /** Numbers are aligned at the end. */
  isNumber?: boolean;
  /** The field to sort by; left out if sorting makes no sense. */
  sort?: string;
  cell: (row: T) => React.ReactNode;
}

export interface Placed<T> extends Column<T> {
  start: number;
  size: number;
}

/**
 * Columns grow to so many pixels in all: a longer line is not read. So no column moves on a wide
 * screen when a pane opens beside them.
 */
const GROWN_MAX = 2400;

/** The rank of the columns that leave next. */
function lastOf<T>(columns: Column<T>[]): number {
  return Math.max(...columns.map(({ rank }) => rank));
}

/** The columns that fit, with their places. Without room the least important ones are left out. */
export function place<T>(columns: Column<T>[], room: number): Placed<T>[] {
  let kept = columns;
  const gives = ({ width: all, least }: Column<T>) => all - (least ?? all);
  const width = (of: Column<T>[]) => of.reduce((sum, column) => sum + column.width, 0);
  while (kept.length > 1 && width(kept) > room) {
    const leaving = lastOf(kept);
    const cut = kept.reduce(
      (sum, column) => sum + (column.rank === leaving ? gives(column) : 0),
      0,
    );
    if (cut > 0 && width(kept) - cut <= room) break;
    kept = kept.filter((column) => column.rank < leaving);
  }
  // Spare room is shared out; missing room is taken from the least important columns.
  const least = width(kept);
  const more = room < least ? room - least : Math.max(0, Math.min(room, GROWN_MAX) - least);
  const last = lastOf(kept);
  const part = (column: Column<T>) => {
    if (more >= 0) return column.grows ?? 0;
    return column.rank === last ? gives(column) : 0;
  };
  const parts = kept.reduce((sum, column) => sum + part(column), 0);
  let start = 0;
  return kept.map((column) => {
    const size = column.width + (parts > 0 ? (more * part(column)) / parts : 0);
    const placed = { ...column, start, size };
    start += size;
    return placed;
  });
}
