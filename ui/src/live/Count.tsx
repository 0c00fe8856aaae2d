// How many rows of a list match, and how many there are.
import { useState } from "react";

import css from "./live.module.css";

interface Props {
  answer: { total: number; all: number; order: string } | undefined;
  isFiltered: boolean;
}

/** Its place is there before its number: the line is not to break when that comes or changes. */
export function Count({ answer, isFiltered }: Props): React.ReactNode {
  const text = answer
    ? isFiltered
      ? `${answer.total} of ${answer.all}`
      : `${answer.total} in all`
    : "";
  // Screen readers are told the number of another list, not each change of it.
  const [said, setSaid] = useState<{ order?: string; rows?: number }>({});
  if (answer && answer.order !== said.order) setSaid({ order: answer.order, rows: answer.total });
  return (
    <>
      <span className={`muted ${css.count}`}>{text}</span>
      <output className="visually-hidden">{said.order && `${said.rows} rows`}</output>
    </>
  );
}
