// The pods of a workload, live.
import page from "../kit/page.module.css";
import { Skeleton } from "../kit/States";
import { printGpus, Status } from "../kit/Status";
import { Age, Clock } from "../kit/time";
import { useView } from "../live/client";
import type { WorkloadRow } from "../live/rows";

export function Pods({ row }: { row: WorkloadRow }): React.ReactNode {
  const answer = useView({
    kind: "pod",
    conditions: [{ field: "workloadId", operator: "==", value: row.id }],
    sort: "name",
    to: 500,
  });
  if (!answer) return <Skeleton rows={3} height={40} />;
  if (answer.total === 0) return <p className="muted">It has no pods now.</p>;
  return (
    <div className={page.stack}>
      {answer.total > 500 && <p className="muted">The first 500 of {answer.total}.</p>}
      <ul className={page.lines}>
        {answer.rows.map(({ object: pod }) => (
          <li key={pod.id} style={{ fontSize: 13 }}>
            <span className={page.row}>
              <b>{pod.name}</b>
              <Status of={pod.state ?? pod.k8sPhase} />
              <span className="muted">
                <Age of={pod.createdAt} />, since <Clock at={pod.createdAt} seconds />
              </span>
            </span>
            <span className="muted">
              {pod.nodeName ?? "on no node"} · {printGpus(pod.allocatedResources?.gpu ?? 0)} /{" "}
              {printGpus(pod.requestedResources?.gpu?.request ?? 0)} GPUs ·{" "}
              {pod.containers[0]?.image}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
