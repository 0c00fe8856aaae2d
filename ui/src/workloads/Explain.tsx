// Why a workload waits or was stopped, what would let it start, and who holds what it needs.
import type { UseQueryResult } from "@tanstack/react-query";

import type { Advice, AdvisedChange, Diagnosis, Explanation, StartEstimate } from "../api/types";
import { NodeLink, ProjectLink, WorkloadLink } from "./links";
import page from "../kit/page.module.css";
import { AsOf, Command, Failure, Former, Skeleton } from "../kit/States";
import { CodeLink, countGpus, printGpus } from "../kit/Status";
import { useThrottled } from "../kit/throttle";
import { Clock } from "../kit/time";
import { useExplanation } from "../live/explained";
import { useFormer } from "../live/former";
import { waits, type WorkloadRow } from "../live/rows";

/** Shortest time between two diagnoses of a workload. */
const TRIED_MS = 3000;

export function Explain({ row }: { row: WorkloadRow }): React.ReactNode {
  // The reasons, since a row names one that many share by an id that stays when its sentence changes.
  const moment = JSON.stringify([
    row.phase,
    row.phaseUpdatedAt,
    row.reasons ?? [],
    row.lastEviction?.at,
  ]);
  const known = useExplanation("known", row.id, [moment]);
  // Tried out on a copy of the cluster: what is known at once does not wait for it, and a sentence
  // that changes all the time does not try it out each time.
  const found = useExplanation("diagnosis,estimate", row.id, [useThrottled(moment, TRIED_MS)]);
  const former = useFormer(known, row.id);
  const again = () => {
    if (known.error) void known.refetch();
    if (found.error) void found.refetch();
  };
  const said = known.data ?? former?.data;
  if (!said) {
    if (known.error) return <Failure error={known.error} onRetry={again} />;
    return <Skeleton rows={5} height={56} />;
  }
  return (
    <Former error={known.error} at={former?.at ?? 0} onRetry={again}>
      <Said said={said} found={found} id={row.id} />
    </Former>
  );
}

interface SaidProps {
  said: Explanation;
  found: UseQueryResult<Explanation>;
  id: string;
}

function Said({ said, found, id }: SaidProps): React.ReactNode {
  const former = useFormer(found, id);
  const tried = found.data ?? former?.data;
  const { diagnosis, startEstimate } = tried ?? {};
  return (
    <div className={page.stack}>
      {said.lastEviction && (
        <div className={page.card}>
          <h3>
            <span style={{ color: "var(--evicted)" }}>▲</span>{" "}
            <Clock at={said.lastEviction.at} isStop /> <CodeLink>{said.lastEviction.code}</CodeLink>
          </h3>
          <p>{said.lastEviction.message}</p>
          {said.lastEviction.beneficiary && (
            <p className={page.links}>
              For <WorkloadLink of={said.lastEviction.beneficiary} />
            </p>
          )}
        </div>
      )}
      {said.pendingReasons.length > 0 && (
        <div className={page.card}>
          <h3>Waits</h3>
          <ul className={page.lines}>
            {said.pendingReasons.map(({ code, message }) => (
              <li key={code + message}>
                <CodeLink>{code}</CodeLink> {message}
              </li>
            ))}
          </ul>
        </div>
      )}
      {said.pendingReasons.length === 0 && (
        <div className={page.card}>
          <p>{said.summary}</p>
        </div>
      )}
      <Quota of={said} />
      {found.error && <Failure error={found.error} onRetry={() => void found.refetch()} />}
      {found.error && former && <AsOf at={former.at} />}
      {found.isPending && said.pendingReasons.length > 0 && <Skeleton rows={3} height={56} />}
      {startEstimate && <Start estimate={startEstimate} />}
      {diagnosis && diagnosis.advice.length > 0 && (
        <WhatHelps advice={diagnosis.advice} runs={!waits(said.phase)} />
      )}
      {diagnosis && <Holders of={diagnosis} />}
      {diagnosis && <Ahead of={diagnosis} />}
      {diagnosis && <Where of={diagnosis} />}
      {diagnosis && diagnosis.searches.length > 0 && (
        <div className={page.card}>
          <h3>Why nothing was moved or taken for it</h3>
          <ul className={page.lines}>
            {diagnosis.searches.map(({ code, message }) => (
              <li key={code}>
                <CodeLink>{code}</CodeLink> {message}
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
    <p>
      {earliest && (
        <b>
          May start <Clock at={earliest} isStop />
          {latest && latest !== earliest && (
            <>
              {" – "}
              <Clock at={latest} isStop />
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
  const pools = of.projectPools ?? [];
  const one = {
    allocated: of.projectAllocated,
    quota: of.projectQuota,
    fairShare: of.projectFairShare,
  };
  const shares = pools.length > 0 ? pools : [{ ...one, nodePool: "" }];
  return shares.map((share) => (
    <p className="muted" style={{ fontSize: 13 }} key={share.nodePool}>
      {of.projectName} holds {printGpus(share.allocated)} of a quota of {countGpus(share.quota)}
      {share.nodePool && ` in node pool ${share.nodePool}`}; its fair share{" "}
      {share.nodePool && "there "}is {printGpus(share.fairShare)}.
    </p>
  ));
}

function WhatHelps({ advice, runs }: { advice: Advice[]; runs: boolean }): React.ReactNode {
  return (
    <div className={page.card}>
      <h3>
        What would let {runs ? "its other pods" : "it"} start{" "}
        <span className="muted">· each tried out</span>
      </h3>
      <ul className={page.lines}>
        {advice.map((one) => (
          <li key={one.kind + one.message}>
            {one.message} <LinksOf change={one.change} />
            {one.commands?.map((command) => (
              <Command key={command} text={command} />
            ))}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Where the workload, the node and the projects of a change are. */
function LinksOf({ change }: { change: AdvisedChange }): React.ReactNode {
  const nodes = "repairs" in change ? change.repairs : "node" in change ? [change] : [];
  const projects = "raises" in change ? new Set(change.raises.map(({ name }) => name)) : [];
  const links = [
    ...("workload" in change ? [<WorkloadLink key="workload" of={change.workload} />] : []),
    ...nodes.map(({ node }) => <NodeLink key={`node ${node}`} name={node} />),
    ...[...projects].map((name) => <ProjectLink key={`project ${name}`} name={name} />),
  ];
  return links.length > 0 && <span className={page.links}>{links}</span>;
}

function Holders({ of }: { of: Diagnosis }): React.ReactNode {
  const projects = new Set(of.projectHoldings?.map(({ name }) => name));
  const workloads = of.workloadHoldings ?? [];
  return (
    <Sentences title="Who holds what it needs" of={of.holders}>
      {[...projects].map((name) => (
        <ProjectLink key={name} name={name} />
      ))}
      {workloads.map(({ workload, resource }) => (
        <WorkloadLink key={`${workload.projectName}/${workload.name} ${resource}`} of={workload} />
      ))}
    </Sentences>
  );
}

function Ahead({ of: { ahead, aheadMore } }: { of: Diagnosis }): React.ReactNode {
  if (!ahead?.length) return null;
  return (
    <div className={page.card}>
      <h3>Who is looked at before it in its project</h3>
      <ul className={page.lines}>
        {ahead.map(({ workload, requestedGpus, message }) => (
          <li key={workload.id ?? `${workload.projectName}/${workload.name}`}>
            <WorkloadLink of={workload} /> asks for {countGpus(requestedGpus)}: {message}
          </li>
        ))}
        {(aheadMore ?? 0) > 0 && <li>and {aheadMore} more</li>}
      </ul>
    </div>
  );
}

function Where({ of }: { of: Diagnosis }): React.ReactNode {
  return (
    <Sentences title="Where it does not fit" of={of.nodes}>
      {of.nodeClasses?.map(({ like }) => (
        <NodeLink key={like} name={like} />
      ))}
    </Sentences>
  );
}

interface SentencesProps {
  title: string;
  of: string[];
  /** Links to what the sentences name. */
  children: React.ReactNode;
}

function Sentences({ title, of, children }: SentencesProps): React.ReactNode {
  if (of.length === 0) return null;
  return (
    <div className={page.card}>
      <h3>{title}</h3>
      <ul className={page.lines}>
        {of.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <p className={page.links}>{children}</p>
    </div>
  );
}
