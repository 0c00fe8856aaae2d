// The keyboard of a grid, as the ARIA Authoring Practices have it: key to the next position.

/** Row -1 is the header. */
export interface Position {
  row: number;
  column: number;
}

export interface Extent {
  rows: number;
  columns: number;
  /** Rows on one screen. */
  page: number;
  /** The first column is at the right. */
  isRtl?: boolean;
}

interface Key {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
}

/** True if Ctrl, or its equivalent, is held. */
export function isUnder({ ctrlKey, metaKey }: Omit<Key, "key">): boolean {
  return ctrlKey || metaKey;
}

/** Where a key leads from a position; undefined for keys that do not move. */
export function move(from: Position, key: Key, extent: Extent): Position | undefined {
  const { row, column } = from;
  const lastRow = extent.rows - 1;
  const lastColumn = extent.columns - 1;
  const all = isUnder(key);
  const right = extent.isRtl ? -1 : 1;
  const at = (nextRow: number, nextColumn: number): Position => ({
    row: Math.max(-1, Math.min(lastRow, nextRow)),
    column: Math.max(0, Math.min(lastColumn, nextColumn)),
  });
  switch (key.key) {
    case "ArrowDown":
      return at(row + 1, column);
    case "ArrowUp":
      return at(row - 1, column);
    case "j":
      return all ? undefined : at(row + 1, column);
    case "k":
      return all ? undefined : at(Math.max(0, row - 1), column);
    case "ArrowRight":
      return at(row, column + right);
    case "ArrowLeft":
      return at(row, column - right);
    case "PageDown":
      return at(row + extent.page, column);
    case "PageUp":
      return at(Math.max(0, row - extent.page), column);
    case "Home":
      return all ? at(0, 0) : at(row, 0);
    case "End":
      return all ? at(lastRow, lastColumn) : at(row, lastColumn);
    default:
      return undefined;
  }
}
