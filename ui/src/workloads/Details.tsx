// Everything that a workload was made of.
import { useQuery } from "@tanstack/react-query";

import { get } from "../api/http";
import type { Workload } from "../api/types";
import page from "../kit/page.module.css";
import { Failure, Former, Skeleton } from "../kit/States";
import { printGpus } from "../kit/Status";
import { printExact } from "../kit/time";
import { useFormer } from "../live/former";
import type { WorkloadRow } from "../live/rows";

export function Details({ row }: { row: WorkloadRow }): React.ReactNode {
  const asked = useQuery({
    queryKey: ["workload", row.id, row.phase, row.phaseUpdatedAt],
    queryFn: () => get<Workload>(`/api/v1/workloads/${row.id}`),
    // Of the same workload alone.
    placeholderData: (before, query) => (query?.queryKey[1] === row.id ? before : undefined),
  });
  const former = useFormer(asked, row.id);
  const again = () => void asked.refetch();
  const whole = asked.data ?? former?.data;
  if (!whole) {
    if (asked.error) return <Failure error={asked.error} onRetry={again} />;
    return <Skeleton rows={8} />;
  }
  return (
    <Former error={asked.error} at={former?.at ?? 0} onRetry={again}>
      <Fields row={row} whole={whole} />
    </Former>
  );
}

function Fields({ row, whole }: { row: WorkloadRow; whole: Workload }): React.ReactNode {
  const { labels, annotations } = whole.additionalFields ?? {};
  const shown: [name: string, value: React.ReactNode][] = [
    ["Id", <code key="id">{whole.id}</code>],
    ["Project", whole.projectName],
    ["Department", whole.departmentName],
    ["Created by", whole.submittedBy],
    ["Created", printExact(whole.createdAt)],
    ["Completed", row.completedAt && printExact(row.completedAt)],
    ["Template", whole.additionalFields?.template?.name],
    ["Environment", whole.environments?.map((one) => one.name || one.id).join(", ")],
    ["Compute resource", whole.additionalFields?.computeResource?.name],
    ["Data sources", whole.datasources?.map((one) => one.name || one.id).join(", ")],
    ["Images", whole.images?.map((image) => <code key={image}>{image}</code>)],
    [
      "GPUs",
      `${printGpus(row.gpusAllocated)} allocated, ${printGpus(row.gpusRequested)} requested`,
    ],
    ["Priority", row.priorityClassName],
    ["Preemptible", row.preemptible ? "yes" : "no"],
    ["Nodes", row.nodes.join(", ")],
    ["Node pools", row.nodePools.join(", ")],
    ["Variables", pairs(whole.environmentVariables)],
    ["Labels", pairs(labels)],
    ["Annotations", pairs(annotations)],
  ];
  return (
    <dl className={page.details}>
      {shown
        .filter(([, value]) => value !== undefined && value !== "" && value !== null)
        .map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Names with their values, a line each. The direction of a text of users stays within it. */
function pairs(of: Record<string, string> | null | undefined): React.ReactNode {
  const all = Object.entries(of ?? {});
  if (all.length === 0) return null;
  return (
    <ul>
      {all.map(([name, value]) => (
        <li key={name}>
          <bdi>{name}</bdi>=<bdi>{String(value)}</bdi>
        </li>
      ))}
    </ul>
  );
}
