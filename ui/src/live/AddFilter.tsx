// The button that adds a value of one field to the filters of a list.
import { useState } from "react";
import { Autocomplete, DialogTrigger, ListBox, ListBoxItem, Popover } from "react-aria-components";

import { Button } from "../kit/Button";
import kit from "../kit/kit.module.css";
import { Menu } from "../kit/Menu";
import { Search } from "../kit/Search";
import { NothingMatches } from "../kit/States";
import { useSome } from "./client";
import { type Condition, valueAt } from "./conditions";
import type { Kind } from "./rows";

/** A field to filter by: with the values that are offered, or the objects whose names they are. */
export type FilterField = { field: string; name: string } & (
  { values: string[] } | { of: { kind: Kind; field: string } }
);

/** Values on the page; with more, one searches. */
const VALUES_MAX = 50;

interface Props {
  filter: FilterField;
  onAdd: (condition: Condition) => void;
}

export function AddFilter({ filter, onAdd }: Props): React.ReactNode {
  const { field, name } = filter;
  const add = (value: string) => onAdd({ field, operator: "==", value });
  if ("of" in filter) return <AddName of={filter.of} name={name} onAdd={add} />;
  return (
    <Menu
      kind="plain"
      label={`${name} ▾`}
      name={`Filter by ${name}`}
      actions={filter.values.map((value) => ({ id: value, name: value, run: () => add(value) }))}
    />
  );
}

interface NameProps {
  of: { kind: Kind; field: string };
  name: string;
  onAdd: (value: string) => void;
}

/** Offers names of live objects with a search, as there may be thousands. */
function AddName({ of, name, onAdd }: NameProps): React.ReactNode {
  const [isOpen, setOpen] = useState(false);
  const [words, setWords] = useState("");
  const change = (open: boolean) => {
    setOpen(open);
    setWords("");
  };
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={change}>
      <Button kind="plain" aria-label={`Filter by ${name}`}>
        {name} ▾
      </Button>
      <Popover
        placement="bottom start"
        className={kit.popover ?? ""}
        aria-label={`Filter by ${name}`}
      >
        <div className={kit.filter}>
          <Autocomplete inputValue={words} onInputChange={setWords}>
            <Search label={`Search ${name}`} autoFocus />
            <Names
              of={of}
              name={name}
              words={words}
              onClear={() => setWords("")}
              onAdd={(value) => {
                change(false);
                onAdd(value);
              }}
            />
          </Autocomplete>
        </div>
      </Popover>
    </DialogTrigger>
  );
}

/** The values that match; the worker searches them. */
function Names(props: NameProps & { words: string; onClear: () => void }): React.ReactNode {
  const { of, name, words, onAdd, onClear } = props;
  const found = useSome({ kind: of.kind, search: words, sort: of.field, to: VALUES_MAX });
  if (found?.total === 0 && words) {
    return <NothingMatches clear="Clear the search" onClear={onClear} />;
  }
  const values = found?.objects.map((object) => String(valueAt(object, of.field))) ?? [];
  const more = (found?.total ?? 0) - values.length;
  return (
    <>
      <ListBox
        aria-label={name}
        className={kit.list ?? ""}
        items={values.map((value) => ({ id: value }))}
        onAction={(key) => onAdd(String(key))}
        renderEmptyState={() => found && <p className={`muted ${kit.more}`}>There is none yet</p>}
      >
        {({ id }) => (
          <ListBoxItem className={kit.item ?? ""} textValue={id}>
            {id}
          </ListBoxItem>
        )}
      </ListBox>
      {more > 0 && <p className={`muted ${kit.more}`}>{more} more: search</p>}
    </>
  );
}
