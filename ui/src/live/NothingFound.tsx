// Instead of rows that filters leave none of: the filter that hides most, and its removal.
import { Button } from "../kit/Button";
import { NothingMatches } from "../kit/States";
import type { ListState } from "./address";
import { type Condition, printCondition, shorten } from "./conditions";
import type { Excluding } from "./protocol";

interface Props {
  answer: { all: number; excludes: Excluding | undefined };
  /** The objects of the list, in small letters. */
  what: string;
  list: ListState;
  /** A condition in words. */
  say: (condition: Condition) => string;
  onChange: (change: Partial<ListState>) => void;
}

export function NothingFound({ answer, what, list, say, onChange }: Props): React.ReactNode {
  const { all, excludes } = answer;
  const clear = () => onChange({ search: "", conditions: [] });
  if (!excludes) {
    return (
      <NothingMatches clear="Clear all" onClear={clear}>
        <p className="muted">
          {all === 0
            ? `There are no ${what} without filters either.`
            : `Each of ${all} ${what} is hidden by several filters.`}
        </p>
      </NothingMatches>
    );
  }
  const { condition, rows } = excludes;
  const removed = condition && printCondition(condition);
  const remove = () =>
    onChange(
      condition
        ? { conditions: list.conditions.filter((one) => printCondition(one) !== removed) }
        : { search: "" },
    );
  const isOnly = list.conditions.length + (list.search ? 1 : 0) === 1;
  return (
    <NothingMatches clear={isOnly ? "Remove it" : "Clear all"} onClear={isOnly ? remove : clear}>
      <p className="muted">
        {condition ? say(condition) : `The search “${shorten(list.search)}”`} hides {rows} of {all}{" "}
        {what}.
      </p>
      {!isOnly && <Button onPress={remove}>Remove it</Button>}
    </NothingMatches>
  );
}
