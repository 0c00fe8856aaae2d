// Everything that a workload was made of.
import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { get } from "../api/http";
import type { Workload } from "../api/types";
import page from "../kit/page.module.css";
import { Failure, Skeleton } from "../kit/States";
import { printGpus } from "../kit/Status";
import { printExact } from "../kit/time";
import type { WorkloadRow } from "../live/rows";

export function Details({ row }: { row: WorkloadRow }): React.ReactNode {
  const asked = useQuery({
    queryKey: ["workload", row.id, row.phase, row.phaseUpdatedAt],
    queryFn: () => get<Workload>(`/api/v1/workloads/${row.id}`),
    placeholderData: keepPreviousData,
  });
  if (asked.error) return <Failure error={asked.error} onRetry={() => void asked.refetch()} />;
  const whole = asked.data;
  if (!whole) return <Skeleton rows={8} />;
  const variables = Object.entries(whole.environmentVariables ?? {});
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
    ["Variables", variables.map(([name, value]) => `${name}=${String(value)}`).join("\n")],
  ];
  return (
    <dl className={page.details}>
      {shown
        .filter(([, value]) => value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd style={{ whiteSpace: "pre-wrap" }}>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
