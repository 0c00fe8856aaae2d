// How many rows of a list match, and how many there are.
import css from "./live.module.css";

interface Props {
  answer: { total: number; all: number } | undefined;
  isFiltered: boolean;
}

/** Its place is there before its number: the line is not to break when that comes or changes. */
export function Count({ answer, isFiltered }: Props): React.ReactNode {
  return (
    <span className={`muted ${css.count}`}>
      {answer && (isFiltered ? `${answer.total} of ${answer.all}` : `${answer.total} in all`)}
    </span>
  );
}
