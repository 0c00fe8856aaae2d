// Why a workload waits or was stopped, what would let it start, and who holds what it needs.
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { get } from "../api/http";
import type { Advice, Explanation, StartEstimate } from "../api/types";
import page from "../kit/page.module.css";
import { Command, Failure, Skeleton } from "../kit/States";
import { Code, printGpus } from "../kit/Status";
import { Clock } from "../kit/time";
import type { WorkloadRow } from "../live/rows";

export function Explain({ row }: { row: WorkloadRow }): React.ReactNode {
  // Asked again when the row says that something changed, never by the clock.
  const moment = [row.phase, row.phaseUpdatedAt, row.why, row.lastEviction?.at];
  const asked = useQuery({
    queryKey: ["explain", row.id, ...moment],
    queryFn: () => get<Explanation>(`/elastane/v1/workloads/${row.id}/explain`),
    placeholderData: keepPreviousData,
  });
  const said = asked.data;
  if (asked.error) return <Failure error={asked.error} onRetry={() => void asked.refetch()} />;
  if (!said) return <Skeleton rows={5} height={56} />;
  const { diagnosis } = said;
  return (
    <div className={page.stack}>
      {said.lastEviction && (
        <div className={page.card}>
          <h3>
            <span style={{ color: "var(--evicted)" }}>▲</span> <Clock at={said.lastEviction.at} />{" "}
            <Code>{said.lastEviction.code}</Code>
          </h3>
          <p>{said.lastEviction.message}</p>
        </div>
      )}
      {said.pendingReasons.length > 0 && (
        <div className={page.card}>
          <h3>Waits</h3>
          <ul className={page.lines}>
            {said.pendingReasons.map(({ code, message }) => (
              <li key={code + message}>
                <Code>{code}</Code> {message}
              </li>
            ))}
          </ul>
          {said.startEstimate && <Start estimate={said.startEstimate} />}
        </div>
      )}
      {said.pendingReasons.length === 0 && (
        <div className={page.card}>
          <p>{said.summary}</p>
        </div>
      )}
      <Quota of={said} />
      {diagnosis && diagnosis.advice.length > 0 && <WhatHelps advice={diagnosis.advice} />}
      <Sentences title="Who holds what it needs" of={diagnosis?.holders} />
      <Sentences title="Where it does not fit" of={diagnosis?.nodes} />
      {diagnosis && diagnosis.searches.length > 0 && (
        <div className={page.card}>
          <h3>Why nothing was moved or taken for it</h3>
          <ul className={page.lines}>
            {diagnosis.searches.map(({ code, message }) => (
              <li key={code}>
                <Code>{code}</Code> {message}
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function Start({ estimate }: { estimate: StartEstimate }): React.ReactNode {
  const { earliest, latest, assumption } = estimate;
  return (
    <p style={{ marginTop: 8 }}>
      {earliest && (
        <b>
          May start <Clock at={earliest} />
          {latest && latest !== earliest && (
            <>
              {" – "}
              <Clock at={latest} />
            </>
          )}{" "}
        </b>
      )}
      <span className="muted">
        {earliest ? "if " : "No estimate of its start: "}
        {assumption}
      </span>
    </p>
  );
}

function Quota({ of }: { of: Explanation }): React.ReactNode {
  return (
    <p className="muted" style={{ fontSize: 13 }}>
      {of.projectName} holds {printGpus(of.projectAllocated)} of a quota of{" "}
      {printGpus(of.projectQuota)} GPUs; its fair share is {printGpus(of.projectFairShare)}.
    </p>
  );
}

function WhatHelps({ advice }: { advice: Advice[] }): React.ReactNode {
  return (
    <div className={page.card}>
      <h3>
        What would let it start <span className="muted">· each tried out</span>
      </h3>
      <ul className={page.lines}>
        {advice.map(({ kind, message, commands }) => (
          <li key={kind + message}>
            <p style={{ marginBottom: commands?.length ? 6 : 0 }}>{message}</p>
            {commands?.map((command) => (
              <Command key={command} text={command} />
            ))}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Sentences({ title, of }: { title: string; of: string[] | undefined }): React.ReactNode {
  if (!of || of.length === 0) return null;
  return (
    <div className={page.card}>
      <h3>{title}</h3>
      <ul className={page.lines}>
        {of.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </div>
  );
}
