// The button that adds a value of one field to the filters of a list.
import { useState } from "react";
import {
  Autocomplete,
  DialogTrigger,
  Input,
  ListBox,
  ListBoxItem,
  Popover,
  SearchField,
} from "react-aria-components";

import { Button } from "../kit/Button";
import kit from "../kit/kit.module.css";
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
  const [isOpen, setOpen] = useState(false);
  const [words, setWords] = useState("");
  const { field, name } = filter;
  const close = (open: boolean) => {
    setOpen(open);
    setWords("");
  };
  const add = (value: string) => {
    close(false);
    onAdd({ field, operator: "==", value });
  };
  return (
    <DialogTrigger isOpen={isOpen} onOpenChange={close}>
      <Button kind="plain" aria-label={`Filter by ${name}`}>
        {name} ▾
      </Button>
      <Popover className={kit.popover ?? ""} aria-label={`Filter by ${name}`}>
        <div className={kit.filter}>
          <Autocomplete inputValue={words} onInputChange={setWords}>
            <SearchField aria-label={`Search ${name}`} autoFocus>
              <Input placeholder="Search" className={kit.input ?? ""} spellCheck={false} />
            </SearchField>
            {"of" in filter ? (
              <Names of={filter.of} name={name} words={words} onAdd={add} />
            ) : (
              <Values name={name} values={matching(filter.values, words)} onAdd={add} />
            )}
          </Autocomplete>
        </div>
      </Popover>
    </DialogTrigger>
  );
}

function matching(values: string[], words: string): string[] {
  const wanted = words.toLowerCase();
  return values.filter((value) => value.toLowerCase().includes(wanted));
}

interface NamesProps {
  of: { kind: Kind; field: string };
  name: string;
  words: string;
  onAdd: (value: string) => void;
}

/** The values of a field of live objects; the worker searches them. */
function Names({ of: { kind, field }, name, words, onAdd }: NamesProps): React.ReactNode {
  const found = useSome({ kind, search: words, sort: field, to: VALUES_MAX });
  const values = found?.objects.map((object) => String(valueAt(object, field))) ?? [];
  const more = (found?.total ?? 0) - values.length;
  return (
    <>
      <Values name={name} values={values} onAdd={onAdd} />
      {more > 0 && <p className={`muted ${kit.more}`}>{more} more: search</p>}
    </>
  );
}

interface ValuesProps {
  name: string;
  values: string[];
  onAdd: (value: string) => void;
}

function Values({ name, values, onAdd }: ValuesProps): React.ReactNode {
  return (
    <ListBox
      aria-label={name}
      className={kit.list ?? ""}
      items={values.map((value) => ({ id: value }))}
      onAction={(key) => onAdd(String(key))}
      renderEmptyState={() => <p className={`muted ${kit.more}`}>Nothing matches</p>}
    >
      {({ id }) => (
        <ListBoxItem className={kit.item ?? ""} textValue={id}>
          {id}
        </ListBoxItem>
      )}
    </ListBox>
  );
}
