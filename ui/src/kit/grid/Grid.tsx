// The grid: draws only what is visible, moves by the keyboard, keeps still while it is read.
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { Button } from "../Button";
import { Skeleton } from "../States";
import { type Column, place, type Placed } from "./columns";
import css from "./grid.module.css";
import { move, type Position } from "./keys";

/** Rows drawn above and below what is visible. */
const OVERSCAN = 6;
const STILL_MS = 1500;
const HEAD = 34;

export interface GridRow<T> {
  id: string;
  object: T;
  gone?: boolean | undefined;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  /** The rows from `from` on; undefined while they are not known. */
  rows: GridRow<T>[] | undefined;
  from: number;
  total: number;
  fresh: number;
  sort: string | undefined;
  descending: boolean;
  selected: string | undefined;
  onSort: (sort: string, descending: boolean) => void;
  onRange: (from: number, to: number) => void;
  onFrozen: (frozen: boolean) => void;
  onOpen?: (id: string) => void;
  onKey?: (key: string, id: string | undefined) => boolean;
  empty: React.ReactNode;
}

export function Grid<T>(props: Props<T>): React.ReactNode {
  const { columns, rows, from, total, onRange, onFrozen, onOpen, onKey } = props;
  const outer = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0, row: 36 });
  const [top, setTop] = useState(0);
  const [focus, setFocus] = useState<Position>({ row: 0, column: 0 });
  const moved = useRef(false);
  const placed = useMemo(() => place(columns, size.width), [columns, size.width]);

  useLayoutEffect(() => {
    const element = outer.current;
    if (!element) return undefined;
    const measure = () => {
      const row = Number.parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 36;
      setSize({ width: element.clientWidth, height: element.clientHeight, row });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const first = Math.max(0, Math.floor(top / size.row) - OVERSCAN);
  const last = Math.ceil((top + size.height) / size.row) + OVERSCAN;
  useEffect(() => onRange(first, last), [first, last, onRange]);

  const { hold, release, thaw } = useStill(onFrozen);

  // Focus follows the keyboard once the row is drawn.
  useEffect(() => {
    if (!moved.current) return;
    const at = `[data-row="${focus.row}"] [data-column="${focus.column}"]`;
    const cell = outer.current?.querySelector<HTMLElement>(at);
    if (cell) {
      moved.current = false;
      cell.focus({ preventScroll: true });
    }
  });

  const show = (row: number) => {
    const element = outer.current;
    if (!element || row < 0) return;
    const start = row * size.row;
    const room = element.clientHeight - HEAD;
    if (start < element.scrollTop) element.scrollTop = start;
    else if (start + size.row > element.scrollTop + room) {
      element.scrollTop = start + size.row - room;
    }
  };

  const keyDown = (event: React.KeyboardEvent) => {
    if (event.altKey) return;
    const page = Math.max(1, Math.floor((size.height - HEAD) / size.row) - 1);
    const next = move(focus, event, { rows: total, columns: placed.length, page });
    const id = rows?.[focus.row - from]?.id;
    if (next) {
      moved.current = true;
      setFocus(next);
      show(next.row);
    } else if (event.key === "Enter" && focus.row < 0) {
      const column = placed[focus.column];
      if (column) sortBy(column);
    } else if (event.key === "Enter" && id && onOpen) {
      onOpen(id);
    } else if (event.key === "R" && props.fresh > 0) {
      thaw();
    } else if (event.ctrlKey || event.metaKey || !onKey?.(event.key, id)) {
      return;
    }
    event.preventDefault();
  };

  const sortBy = ({ sort }: Placed<T>) => {
    if (!sort) return;
    props.onSort(sort, props.sort === sort ? !props.descending : false);
    thaw();
  };

  const focusOn = useCallback((row: number, column: number) => setFocus({ row, column }), []);
  const active = { row: Math.min(focus.row, total - 1), column: focus.column };
  return (
    <div className={css.frame}>
      <div
        ref={outer}
        className={css.grid}
        role="grid"
        aria-label={props.label}
        aria-rowcount={total + 1}
        aria-colcount={placed.length}
        aria-busy={rows === undefined}
        onKeyDown={keyDown}
        onScroll={(event) => {
          setTop(event.currentTarget.scrollTop);
          hold("scroll");
        }}
        onPointerEnter={(event) => event.pointerType === "mouse" && hold("pointer")}
        onPointerLeave={() => release("pointer")}
        onFocus={() => hold("focus")}
        onBlur={() => release("focus")}
      >
        <Head {...props} placed={placed} active={active} onPress={sortBy} onFocus={focusOn} />
        {rows === undefined && (
          <div className={css.loading}>
            <Skeleton rows={8} />
          </div>
        )}
        {total > 0 && (
          <div role="rowgroup" style={{ position: "relative", height: total * size.row }}>
            {rows?.map((row, index) => (
              <Row
                key={row.id}
                row={row.object}
                id={row.id}
                index={from + index}
                top={(from + index) * size.row}
                gone={row.gone === true}
                selected={row.id === props.selected}
                placed={placed}
                active={active.row === from + index ? active.column : -1}
                onFocus={focusOn}
                onOpen={onOpen}
              />
            ))}
          </div>
        )}
      </div>
      {rows && total === 0 && <div className={css.empty}>{props.empty}</div>}
      {props.fresh > 0 && (
        <div className={css.fresh}>
          <Button onPress={thaw}>{props.fresh} new ↑</Button>
        </div>
      )}
    </div>
  );
}

/** The order is frozen while one reads: pointer over it, focus in it, or just scrolled. */
function useStill(onFrozen: (frozen: boolean) => void) {
  const held = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const hold = (by: string) => {
    held.current.add(by);
    onFrozen(true);
    if (by !== "scroll") return;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => release("scroll"), STILL_MS);
  };
  const release = (by: string) => {
    held.current.delete(by);
    if (held.current.size === 0) onFrozen(false);
  };
  const thaw = () => {
    onFrozen(false);
    if (held.current.size > 0) setTimeout(() => held.current.size > 0 && onFrozen(true), 300);
  };
  return { hold, release, thaw };
}

interface HeadProps<T> {
  placed: Placed<T>[];
  sort: string | undefined;
  descending: boolean;
  active: Position;
  onPress: (column: Placed<T>) => void;
  onFocus: (row: number, column: number) => void;
}

function Head<T>({ placed, sort, descending, active, onPress, onFocus }: HeadProps<T>) {
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
          </div>
        ))}
      </div>
    </div>
  );
}

interface RowProps<T> {
  row: T;
  id: string;
  index: number;
  top: number;
  gone: boolean;
  selected: boolean;
  placed: Placed<T>[];
  /** The column that has the focus of the keyboard; -1 for none. */
  active: number;
  onFocus: (row: number, column: number) => void;
  onOpen: ((id: string) => void) | undefined;
}

function RowOf<T>(props: RowProps<T>): React.ReactNode {
  const { row, id, index, top, gone, selected, placed, active, onFocus, onOpen } = props;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={selected}
      data-row={index}
      data-gone={gone || undefined}
      className={css.row}
      style={{ top }}
      onClick={() => onOpen?.(id)}
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
          <span>{row && column.cell(row)}</span>
        </div>
      ))}
    </div>
  );
}

const Row = memo(RowOf) as typeof RowOf;
