// A grid over a live kind: search and filters in the address, rows from the worker.
import { useCallback, useEffect, useRef, useState } from "react";

import { Button } from "../kit/Button";
import type { Column } from "../kit/grid/columns";
import { Grid } from "../kit/grid/Grid";
import { Menu } from "../kit/Menu";
import { Search } from "../kit/Search";
import { useList } from "./address";
import { idOf, useView } from "./client";
import { type Condition, printCondition, sayCondition } from "./conditions";
import { AddFilter, type FilterField } from "./AddFilter";
import { moveColumn, useColumns } from "./chosen";
import { Count } from "./Count";
import css from "./live.module.css";
import { NothingFound } from "./NothingFound";
import { type Picked, usePicked } from "./picked";
import type { Kind, Kinds } from "./rows";
import { Views } from "./Views";

interface Props<K extends Kind> {
  kind: K;
  label: string;
  columns: Column<Kinds[K]>[];
  /** Conditions that the page has of its own, such as the kind of an asset. */
  always?: Condition[];
  filters?: FilterField[];
  sort: string;
  descending?: boolean;
  selected?: string | undefined;
  onOpen?: (id: string, asPage: boolean) => void;
  onKey?: (key: string, object: Kinds[K] | undefined) => boolean;
  /** Actions on the rows that are picked; without them no rows are. */
  pickActions?: (picked: Picked) => React.ReactNode;
  /** Shown where there is nothing at all. */
  empty: React.ReactNode;
}

export function LiveGrid<K extends Kind>(props: Props<K>): React.ReactNode {
  const { kind, always, filters = [], empty } = props;
  const [list, change] = useList();
  const [range, setRange] = useState({ from: 0, to: 60 });
  const sort = list.sort ?? props.sort;
  const descending = list.sort ? list.descending : props.descending === true;
  // The list whose order is frozen: another one, by a choice, a view or the way back, is shown at once.
  const [frozenAt, setFrozenAt] = useState<string>();
  const listKey = JSON.stringify([list.conditions, list.search, sort, descending]);
  const answer = useView({
    kind,
    always,
    conditions: list.conditions,
    search: list.search,
    sort,
    descending,
    ...range,
    frozen: frozenAt === listKey,
    chosen: props.selected,
  });
  const picked = usePicked(answer?.view);
  const { columns, ids, keep, resize } = useColumns(props.label, props.columns, list.columns);
  const onRange = useCallback((from: number, to: number) => {
    setRange((was) => (was.from === from && was.to === to ? was : { from, to }));
  }, []);
  // In the address for others, and in the browser for the next time.
  const chooseColumns = (next: string[] | undefined) => {
    keep(next);
    change({ columns: next });
  };
  const rows = answer?.rows.map(({ object, gone }) => ({ id: idOf(object), object, gone }));
  const objectOf = (id?: string) => rows?.find((row) => row.id === id)?.object;
  const isFiltered = list.search !== "" || list.conditions.length > 0;
  const nameOf = (field: string) => filters.find((one) => one.field === field)?.name ?? field;
  const none =
    isFiltered && answer ? (
      <NothingFound
        answer={answer}
        what={props.label.toLowerCase()}
        list={list}
        say={(condition) => sayCondition(condition, nameOf(condition.field))}
        onChange={change}
      />
    ) : (
      empty
    );
  const bar = useRef<HTMLDivElement>(null);
  // The actions on what is picked take the focus with them. It does not go on in a row, which would
  // keep those that were deleted in their places.
  const isPicking = picked.ids.size > 0;
  const wasPicking = useRef(false);
  useEffect(() => {
    const isDone = wasPicking.current && !isPicking;
    wasPicking.current = isPicking;
    if (isDone && document.activeElement === document.body) bar.current?.focus();
  }, [isPicking]);
  return (
    <div className={css.list}>
      {picked.ids.size > 0 && props.pickActions && (
        <div className={css.bar} role="toolbar" aria-label="Actions on what is picked">
          <output>
            {picked.ids.size} of {answer?.total} picked
          </output>
          {props.pickActions(picked)}
          <Button kind="plain" aria-label="Pick none" onPress={picked.clear}>
            ✕
          </Button>
        </div>
      )}
      <div ref={bar} className={css.bar} role="search" tabIndex={-1} hidden={picked.ids.size > 0}>
        <div className={css.search}>
          <Search
            label={`Search ${props.label}`}
            placeholder="Search   /"
            value={list.search}
            onChange={(search) => change({ search })}
          />
        </div>
        {list.conditions.map((condition) => (
          <Chip
            key={printCondition(condition)}
            condition={condition}
            name={nameOf(condition.field)}
            onRemove={() => {
              // The button that has the focus goes.
              bar.current?.focus();
              change({ conditions: list.conditions.filter((one) => one !== condition) });
            }}
          />
        ))}
        {filters.map((filter) => (
          <AddFilter
            key={filter.field}
            filter={filter}
            onAdd={(condition) => change({ conditions: withCondition(list.conditions, condition) })}
          />
        ))}
        <span className={css.grow} />
        <Views label={props.label} />
        <Menu
          kind="plain"
          label="Columns ▾"
          name="Columns"
          actions={[
            ...props.columns.slice(1).map(({ id, name }) => ({
              id,
              name,
              isChosen: ids.includes(id),
              run: () => chooseColumns(toggled(ids, id)),
            })),
            {
              id: "-",
              name: "As at first",
              isFirst: true,
              run: () => chooseColumns(undefined),
            },
          ]}
        />
        <Count answer={answer} isFiltered={isFiltered} />
      </div>
      <Grid
        {...props}
        columns={columns}
        onResize={resize}
        onMove={({ id }, places) => chooseColumns(moveColumn(ids, id, places))}
        rows={rows}
        from={answer?.from ?? 0}
        total={answer?.total ?? 0}
        fresh={answer?.fresh ?? 0}
        order={answer?.order}
        sort={sort}
        descending={descending}
        selected={props.selected}
        onSort={(next, isDescending) => change({ sort: next, descending: isDescending })}
        onRange={onRange}
        onKey={(key, id) => props.onKey?.(key, objectOf(id)) === true}
        onFrozen={(frozen) => setFrozenAt(frozen ? listKey : undefined)}
        picking={props.pickActions && picked}
        empty={none}
      />
    </div>
  );
}

/** The ids with this one, or without. */
function toggled(ids: string[], id: string): string[] {
  return ids.includes(id) ? ids.filter((other) => other !== id) : [...ids, id];
}

/** Adds a value to the condition of its field, or a condition. */
function withCondition(conditions: Condition[], added: Condition): Condition[] {
  const same = conditions.find(
    ({ field, operator }) => field === added.field && operator === added.operator,
  );
  if (!same) return [...conditions, added];
  const values = new Set([...same.value.split("|"), added.value]);
  return conditions.map((one) => (one === same ? { ...one, value: [...values].join("|") } : one));
}

interface ChipProps {
  condition: Condition;
  name: string;
  onRemove: () => void;
}

function Chip({ condition, name, onRemove }: ChipProps): React.ReactNode {
  const sign = condition.operator === "==" ? ": " : ` ${condition.operator} `;
  const text = `${name}${sign}${condition.value.replaceAll("|", ", ")}`;
  return (
    <span className={css.chip}>
      {text}
      <Button kind="plain" aria-label={`Remove the filter ${text}`} onPress={onRemove}>
        ×
      </Button>
    </span>
  );
}
