// The grid: draws only what is visible, moves by the keyboard, keeps still while it is read.
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";

import { Button } from "../Button";
import { Skeleton } from "../States";
import { useAnchor } from "./anchor";
import { type Column, place, type Placed, STEP } from "./columns";
import css from "./grid.module.css";
import { isUnder, move, type Position } from "./keys";
import { Head, Row } from "./Rows";
import { useStill } from "./still";

/** Rows drawn above and below what is visible. */
const OVERSCAN = 6;
const HEAD = 34;

export interface GridRow<T> {
  id: string;
  object: T;
  gone?: boolean | undefined;
}

/** Picking rows, to act on several. */
export interface Picking {
  ids: ReadonlySet<string>;
  toggle: (id: string) => void;
  /** Picks from the row that was picked last, or the first one, to the second. */
  extend: (from: string, to: string) => void;
  all: () => void;
  clear: () => void;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  /** The rows from `from` on; undefined while they are not known. */
  rows: GridRow<T>[] | undefined;
  from: number;
  total: number;
  fresh: number;
  /** Key of the order and of the filters of `rows`. */
  order: string | undefined;
  sort: string | undefined;
  descending: boolean;
  selected: string | undefined;
  onSort: (sort: string, descending: boolean) => void;
  onRange: (from: number, to: number) => void;
  onFrozen: (frozen: boolean) => void;
  /** Opens a row beside the grid, or with Ctrl in its place. */
  onOpen?: (id: string, asPage: boolean) => void;
  onKey?: (key: string, id: string | undefined) => boolean;
  picking?: Picking | undefined;
  onResize?: (column: Column<T>, pixels: number) => void;
  /** Moves a column by so many places. */
  onMove?: (column: Column<T>, places: number) => void;
  empty: React.ReactNode;
}

export function Grid<T>(props: Props<T>): React.ReactNode {
  const { columns, rows, from, total, onRange, onOpen, onKey, picking } = props;
  const outer = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0, row: 36 });
  const [top, setTop] = useState(0);
  const [focus, setFocus] = useState<Position>({ row: 0, column: 0 });
  // Rows are drawn again only when they change, and call what there is then.
  const latest = useRef({ ...props, focus });
  useLayoutEffect(() => {
    latest.current = { ...props, focus };
  });
  /** Where the keyboard led to, or where it goes on in a grid that was hidden, until it has the focus. */
  const goal = useRef<Position>(undefined);
  const placed = useMemo(() => place(columns, size.width), [columns, size.width]);

  useLayoutEffect(() => {
    const element = outer.current;
    if (!element) return undefined;
    let isHidden = false;
    const measure = () => {
      // Nothing else has the focus: what had it is gone, as a page in place of the grid.
      const isShown = isHidden && element.checkVisibility();
      if (isShown && document.activeElement === document.body) goal.current = latest.current.focus;
      isHidden = !element.checkVisibility();
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

  const { hold, release, thaw } = useStill((frozen) => latest.current.onFrozen(frozen));
  const isOwnScroll = useAnchor(outer, { rows, from, order: props.order, height: size.row });

  // A pane that is closed takes the focus with it: it goes on in the list.
  const isBeside = props.selected !== undefined;
  const wasBeside = useRef(isBeside);
  useEffect(() => {
    const isClosed = wasBeside.current && !isBeside;
    wasBeside.current = isBeside;
    if (isClosed && document.activeElement === document.body) goal.current = latest.current.focus;
    // A row that was scrolled away took the focus with it, without an event.
    if (!outer.current?.contains(document.activeElement)) release("focus");
  });

  // Focus follows the keyboard once the row is drawn.
  useEffect(() => {
    // The ref, not the state: effects of an earlier drawing may run after the key.
    if (!goal.current) return;
    const { row, column } = goal.current;
    const at = `[data-row="${row}"] [data-column="${column}"]`;
    const cell = outer.current?.querySelector<HTMLElement>(at);
    if (cell?.checkVisibility()) {
      goal.current = undefined;
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

  const idAt = (row: number) => rows?.[row - from]?.id;
  const go = (next: Position) => {
    goal.current = next;
    setFocus(next);
    show(next.row);
  };
  /** Shows new rows, from the beginning of the list. */
  const showFresh = () => {
    if (outer.current?.contains(document.activeElement)) go({ row: 0, column: focus.column });
    else outer.current?.scrollTo({ top: 0, behavior: "instant" });
    thaw();
  };
  const keyDown = (event: React.KeyboardEvent) => {
    const isRtl = getComputedStyle(event.currentTarget).direction === "rtl";
    const done = focus.row < 0 ? headKey(event, isRtl) : rowKey(event);
    if (!done) {
      const page = Math.max(1, Math.floor((size.height - HEAD) / size.row) - 1);
      const extent = { rows: total, columns: placed.length, page, isRtl };
      const next = event.altKey || event.shiftKey ? undefined : move(focus, event, extent);
      if (next) go(next);
      else if (event.key === "R" && props.fresh > 0) showFresh();
      else if (isUnder(event) || !onKey?.(event.key, idAt(focus.row))) return;
    }
    event.preventDefault();
  };
  /** Sorts by a column, makes it wider (Shift) and moves it (Alt). */
  const headKey = ({ key, shiftKey, altKey }: React.KeyboardEvent, isRtl: boolean): boolean => {
    const column = placed[focus.column];
    if (!column) return false;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (key === "Enter" || key === " ") sortBy(column);
    else if (by && shiftKey && props.onResize) props.onResize(column, STEP * (isRtl ? -by : by));
    else if (by && altKey && props.onMove) {
      const places = isRtl ? -by : by;
      props.onMove(column, places);
      const to = Math.max(0, Math.min(placed.length - 1, focus.column + places));
      go({ row: -1, column: to });
    } else return false;
    return true;
  };
  /** Opens and picks rows. */
  const rowKey = (event: React.KeyboardEvent): boolean => {
    const { key, shiftKey } = event;
    const id = idAt(focus.row);
    const by = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (key === "Enter" && id && onOpen) onOpen(id, isUnder(event));
    else if (!picking) return false;
    else if (key === "a" && isUnder(event)) picking.all();
    else if (key === "Escape" && picking.ids.size > 0) picking.clear();
    else if ((key === " " || key === "x") && id && !isUnder(event)) picking.toggle(id);
    else if (by && shiftKey) {
      const row = Math.max(0, Math.min(total - 1, focus.row + by));
      const to = idAt(row);
      if (id && to) picking.extend(id, to);
      go({ row, column: focus.column });
    } else return false;
    return true;
  };
  const press = useCallback(
    (id: string, event: React.MouseEvent) => {
      const isCheck = event.target instanceof Element && event.target.closest("[data-check]");
      const { picking: now, selected } = latest.current;
      if (now && event.shiftKey) now.extend(selected ?? id, id);
      else if (now && (isCheck || event.ctrlKey || event.metaKey)) now.toggle(id);
      else onOpen?.(id, false);
    },
    [onOpen],
  );

  const sortBy = ({ sort }: Placed<T>) => {
    if (!sort) return;
    props.onSort(sort, props.sort === sort ? !props.descending : false);
    thaw();
  };

  const focusOn = useCallback((row: number, column: number) => setFocus({ row, column }), []);
  // One stop of Tab: the cell that had the focus, or one on the screen after that was scrolled away.
  const isDrawn = focus.row < from + (rows?.length ?? 0) && focus.row >= from;
  const visible = Math.min(Math.ceil(top / size.row), total - 1);
  const active = { row: focus.row < 0 || isDrawn ? focus.row : visible, column: focus.column };
  return (
    // The button for new rows as well: rows do not come under the pointer on its way to it.
    <div
      className={css.frame}
      onPointerEnter={(event) => event.pointerType === "mouse" && hold("pointer")}
      onPointerLeave={() => release("pointer")}
    >
      <div
        ref={outer}
        className={css.grid}
        role="grid"
        aria-label={props.label}
        aria-rowcount={total + 1}
        aria-colcount={placed.length}
        aria-busy={rows === undefined}
        aria-multiselectable={picking ? true : undefined}
        onKeyDown={keyDown}
        onScroll={(event) => {
          setTop(event.currentTarget.scrollTop);
          if (!isOwnScroll(event.currentTarget.scrollTop)) hold("scroll");
        }}
        onFocus={() => hold("focus")}
        onBlur={() => release("focus")}
      >
        <Head
          {...props}
          placed={placed}
          active={active}
          onPress={sortBy}
          onFocus={focusOn}
          onResize={props.onResize}
        />
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
                current={row.id === props.selected}
                picked={picking?.ids.has(row.id)}
                placed={placed}
                active={active.row === from + index ? active.column : -1}
                onFocus={focusOn}
                onPress={press}
              />
            ))}
          </div>
        )}
      </div>
      {rows && total === 0 && <div className={css.empty}>{props.empty}</div>}
      <output className="visually-hidden">{props.fresh > 0 && "There are new rows"}</output>
      {props.fresh > 0 && (
        <div className={css.fresh}>
          <Button onPress={showFresh}>{props.fresh} new ↑</Button>
        </div>
      )}
    </div>
  );
}
