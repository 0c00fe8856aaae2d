// The rows of a grid: the header, and those of its objects.
import { memo, useRef } from "react";

import { useChanged } from "./changed";
import { type Placed, STEP } from "./columns";
import css from "./grid.module.css";
import type { Position } from "./keys";

interface HeadProps<T> {
  placed: Placed<T>[];
  sort: string | undefined;
  descending: boolean;
  active: Position;
  onPress: (column: Placed<T>) => void;
  onFocus: (row: number, column: number) => void;
  onResize: ((column: Placed<T>, pixels: number) => void) | undefined;
}

export function Head<T>(props: HeadProps<T>): React.ReactNode {
  const { placed, sort, descending, active, onPress, onFocus, onResize } = props;
  const direction = descending ? ("descending" as const) : ("ascending" as const);
  return (
    <div role="rowgroup" className={css.head}>
      <div role="row" aria-rowindex={1} data-row={-1}>
        {placed.map((column, at) => (
          <div
            key={column.id}
            role="columnheader"
            aria-colindex={at + 1}
            {...(column.sort && { "aria-sort": column.sort === sort ? direction : "none" })}
            className={css.cell}
            style={{ insetInlineStart: column.start, width: column.size }}
            data-column={at}
            data-number={column.isNumber || undefined}
            tabIndex={active.row < 0 && active.column === at ? 0 : -1}
            onClick={() => onPress(column)}
            onFocus={() => onFocus(-1, at)}
          >
            <span>
              {column.name}
              {column.sort && column.sort === sort && (descending ? " ↓" : " ↑")}
            </span>
            {onResize && <Edge onResize={(pixels) => onResize(column, pixels)} />}
          </div>
        ))}
      </div>
    </div>
  );
}

/** The end of a column, by which it is made wider or narrower: dragged, or by clicks alone. */
function Edge({ onResize }: { onResize: (pixels: number) => void }): React.ReactNode {
  const isDragged = useRef(false);
  return (
    <span
      className={css.edge}
      aria-hidden="true"
      title="Drag; or click to make it wider, with Shift narrower"
      onClick={(event) => {
        event.stopPropagation();
        if (!isDragged.current) onResize(event.shiftKey ? -STEP : STEP);
      }}
      onPointerDown={({ currentTarget, pointerId }) => {
        currentTarget.setPointerCapture(pointerId);
        isDragged.current = false;
      }}
      onPointerMove={({ buttons, movementX, currentTarget }) => {
        if (buttons !== 1 || movementX === 0) return;
        isDragged.current = true;
        const isRtl = getComputedStyle(currentTarget).direction === "rtl";
        onResize(isRtl ? -movementX : movementX);
      }}
    />
  );
}

interface RowProps<T> {
  row: T;
  id: string;
  index: number;
  top: number;
  gone: boolean;
  /** Its pane is open. */
  current: boolean;
  /** Undefined where no rows are picked. */
  picked: boolean | undefined;
  placed: Placed<T>[];
  /** The column that has the focus of the keyboard; -1 for none. */
  active: number;
  onFocus: (row: number, column: number) => void;
  onPress: (id: string, event: React.MouseEvent) => void;
}

function RowOf<T>(props: RowProps<T>): React.ReactNode {
  const { row, id, index, top, gone, current, picked, placed, active, onFocus, onPress } = props;
  const own = useRef<HTMLDivElement>(null);
  useChanged(own, placed);
  return (
    <div
      ref={own}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={picked}
      aria-current={current || undefined}
      data-row={index}
      data-gone={gone || undefined}
      className={css.row}
      style={{ top }}
      onClick={(event) => onPress(id, event)}
    >
      {placed.map((column, at) => (
        <div
          key={column.id}
          role={at === 0 ? "rowheader" : "gridcell"}
          aria-colindex={at + 1}
          className={css.cell}
          style={{ insetInlineStart: column.start, width: column.size }}
          data-column={at}
          data-number={column.isNumber || undefined}
          tabIndex={active === at ? 0 : -1}
          onFocus={() => onFocus(index, at)}
        >
          {at === 0 && picked !== undefined && (
            <span className={css.check} data-check aria-hidden="true">
              {picked && "✓"}
            </span>
          )}
          <span>{row && column.cell(row)}</span>
        </div>
      ))}
    </div>
  );
}

export const Row = memo(RowOf) as typeof RowOf;
