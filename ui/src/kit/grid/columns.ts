// Columns of a grid, and which of them have room.

export interface Column<T> {
  id: string;
  name: string;
  /** Pixels; columns that `grow` take what is left, and have at least these. */
  width: number;
  /** Its share of what is left. */
  grows?: number;
  /** Pixels to which the column that `grows` is cut before it leaves; `width` if none are said. */
  least?: number;
  /** Columns leave by importance when there is no room: the largest number first. */
  rank: number;
  /** It is shown only where it is chosen. */
  isExtra?: boolean;
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

/** The rank of the columns that leave next. */
function lastOf<T>(columns: Column<T>[]): number {
  return Math.max(...columns.map(({ rank }) => rank));
}

/** The columns that fit, with their places. What has no room is left out, the least important first. */
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
  // What is left is given by shares; what is missing is taken from the least important ones.
  const more = room - width(kept);
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
