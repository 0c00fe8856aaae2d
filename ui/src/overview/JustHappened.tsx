// The last starts, ends, failures and evictions of workloads, newest first.
import { useState } from "react";
import { Link } from "wouter";

import { useStill } from "../kit/grid/still";
import page from "../kit/page.module.css";
import { CodeLink, countGpus, Status } from "../kit/Status";
import { Clock } from "../kit/time";
import { useExplanation } from "../live/explained";
import type { Happening } from "../live/protocol";
import type { WorkloadRow } from "../live/rows";
import css from "./overview.module.css";

/** A list that stays as it is under the pointer and with the focus in it: a link is not to move. */
export function JustHappened({ happened }: { happened: Happening[] }): React.ReactNode {
  const [frozen, setFrozen] = useState(false);
  const { hold, release } = useStill(setFrozen);
  const [shown, setShown] = useState(happened);
  if (!frozen && shown !== happened) setShown(happened);
  return (
    <section
      className={page.card}
      onPointerEnter={() => hold("pointer")}
      onPointerLeave={() => release("pointer")}
      onFocus={() => hold("focus")}
      onBlur={() => release("focus")}
    >
      <h2>Just happened</h2>
      <ul className={`${page.lines} ${css.happened}`}>
        {shown.length === 0 && <li className="muted">Nothing yet</li>}
        {shown.map((one, at) => (
          // By its place: a line that comes changes texts, and moves none.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={at}>{one.what === "phase" ? <Phase of={one} /> : <Eviction of={one} />}</li>
        ))}
      </ul>
    </section>
  );
}

/** The phase that a workload entered, and what there is to say about it. */
function Phase({ of: { at, row } }: { of: Happening }): React.ReactNode {
  const [first] = row.reasons ?? [];
  return (
    <Line
      at={at}
      row={row}
      status={<Status of={row.phase} />}
      message={first?.message ?? places(row)}
    >
      {first?.code && <CodeLink>{first.code}</CodeLink>}
    </Line>
  );
}

/** What a workload holds where; nothing once it has ended. */
function places({ gpusAllocated, nodes, nodesCount }: WorkloadRow): string {
  if (nodes.length === 0) return "";
  const more = nodesCount > nodes.length ? `, … (${nodesCount})` : "";
  return `${countGpus(gpusAllocated)} on ${nodes.join(", ")}${more}`;
}

/** An eviction; its sentence is that of the row, which may be cut, until the whole one is there. */
function Eviction({ of: { at, row } }: { of: Happening }): React.ReactNode {
  const whole = useExplanation("known", row.id, [at]).data?.lastEviction;
  const { code = "", message } = row.lastEviction ?? {};
  return (
    <Line
      at={at}
      row={row}
      status={<span style={{ color: "var(--evicted)" }}>▲</span>}
      message={whole?.at === at ? whole.message : message}
    >
      <CodeLink>{code}</CodeLink>
    </Line>
  );
}

interface LineProps {
  at: string;
  row: WorkloadRow;
  status: React.ReactNode;
  message: string | undefined;
  /** The code. */
  children: React.ReactNode;
}

function Line({ at, row, status, message, children }: LineProps): React.ReactNode {
  const { id, name, projectName } = row;
  return (
    <p>
      <span className="muted">
        <Clock at={at} isStop />
      </span>{" "}
      {status} {children}{" "}
      <Link href={`/workloads/${id}/explain`} className={css.name} title={name}>
        {name}
      </Link>{" "}
      of {projectName} <span className="muted">{message}</span>
    </p>
  );
}
