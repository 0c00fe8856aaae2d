// Events of a workload, newest first.
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { get } from "../api/http";
import type { EventsPage } from "../api/types";
import page from "../kit/page.module.css";
import { Failure, Skeleton } from "../kit/States";
import { Code } from "../kit/Status";
import { Clock } from "../kit/time";
import type { WorkloadRow } from "../live/rows";

const CODE = /^[A-Z]\d{3}$/u;

export function History({ row }: { row: WorkloadRow }): React.ReactNode {
  const asked = useQuery({
    queryKey: ["events", row.id, row.phase, row.phaseUpdatedAt, row.podsRunning, row.why],
    queryFn: () => get<EventsPage>(`/api/v1/workloads/${row.id}/events?limit=200&sortOrder=desc`),
    placeholderData: keepPreviousData,
  });
  if (asked.error) return <Failure error={asked.error} onRetry={() => void asked.refetch()} />;
  if (!asked.data) return <Skeleton rows={6} height={30} />;
  return (
    <ul className={page.lines}>
      {asked.data.events.map(({ id, createdAt, type, reason, message, involvedObject }) => (
        <li key={id} style={{ fontSize: 13 }}>
          <span className={page.row}>
            <span className="muted">
              <Clock at={createdAt} seconds />
            </span>
            {CODE.test(reason) ? <Code>{reason}</Code> : <b>{reason}</b>}
            {type === "Warning" && <span style={{ color: "var(--evicted)" }}>▲ warning</span>}
            {involvedObject.kind === "Pod" && <span className="muted">{involvedObject.name}</span>}
          </span>
          <span>{message}</span>
        </li>
      ))}
    </ul>
  );
}
