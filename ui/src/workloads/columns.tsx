// Columns of the grid of workloads.
import type { Column } from "../kit/grid/columns";
import { Code, printGpus, Status } from "../kit/Status";
import { Age, Clock } from "../kit/time";
import type { WorkloadRow } from "../live/rows";

const ENDED = new Set(["Completed", "Failed", "Stopped"]);

/** Why it waits, was stopped or failed; the code first, since the end is what gets cut. */
export function Why({ of: row }: { of: WorkloadRow }): React.ReactNode {
  const [first] = row.reasons ?? [];
  if (row.phase === "Running") {
    return <span className="muted">{row.overQuota ? "over quota" : "in quota"}</span>;
  }
  if (!first && !row.lastEviction) return null;
  return (
    <>
      {row.lastEviction && row.phase === "Pending" && (
        <span title={row.lastEviction.message}>
          <span style={{ color: "var(--evicted)" }}>▲</span> <Code>{row.lastEviction.code}</Code>{" "}
          stopped{first && " · "}
        </span>
      )}
      {first && (
        <>
          {first.code && <Code>{first.code}</Code>} {first.message}
        </>
      )}
    </>
  );
}

const COLUMNS: Column<WorkloadRow>[] = [
  {
    id: "name",
    name: "Workload",
    width: 150,
    grows: 1,
    rank: 0,
    sort: "name",
    cell: (row) => (
      <b style={{ fontWeight: 600 }} title={row.name}>
        {row.name}
      </b>
    ),
  },
  { id: "type", name: "Type", width: 96, rank: 6, sort: "type", cell: (row) => row.type },
  {
    id: "phase",
    name: "Status",
    width: 138,
    rank: 1,
    sort: "phase",
    cell: (row) => (
      <Status of={row.phase}>
        <Age of={row.phaseUpdatedAt} />
      </Status>
    ),
  },
  {
    id: "why",
    name: "Why",
    width: 220,
    grows: 3,
    least: 96,
    rank: 2,
    sort: "why",
    cell: (row) => <Why of={row} />,
  },
  {
    id: "projectName",
    name: "Project",
    width: 110,
    rank: 4,
    sort: "projectName",
    cell: (row) => row.projectName,
  },
  {
    id: "gpus",
    name: "GPUs",
    width: 76,
    rank: 3,
    isNumber: true,
    sort: "gpusAllocated",
    cell: (row) => `${printGpus(row.gpusAllocated)} / ${printGpus(row.gpusRequested)}`,
  },
  {
    id: "pods",
    name: "Pods",
    width: 76,
    rank: 7,
    isNumber: true,
    sort: "podsRunning",
    cell: (row) => `${row.podsRunning} / ${row.podsRequested}`,
  },
  {
    id: "age",
    name: "Age",
    width: 84,
    rank: 5,
    isNumber: true,
    sort: "createdAt",
    cell: (row) => <Age of={row.createdAt} />,
  },
  {
    id: "submittedBy",
    name: "Created by",
    width: 140,
    rank: 8,
    sort: "submittedBy",
    cell: (row) => row.submittedBy,
  },
  {
    id: "nodes",
    name: "Nodes",
    width: 130,
    rank: 9,
    isExtra: true,
    cell: ({ nodes, nodesCount }) =>
      nodesCount > nodes.length ? `${nodes.join(", ")}, … (${nodesCount})` : nodes.join(", "),
  },
  {
    id: "nodePools",
    name: "Node pools",
    width: 110,
    rank: 9,
    isExtra: true,
    cell: (row) => row.nodePools.join(", "),
  },
  {
    id: "priority",
    name: "Priority",
    width: 110,
    rank: 9,
    isExtra: true,
    sort: "priorityClassName",
    cell: (row) => row.priorityClassName,
  },
  {
    id: "preemptible",
    name: "Preemptible",
    width: 100,
    rank: 9,
    isExtra: true,
    sort: "preemptible",
    cell: (row) => (row.preemptible ? "yes" : "no"),
  },
  {
    id: "architecture",
    name: "Architecture",
    width: 110,
    rank: 9,
    isExtra: true,
    cell: ({ type }) => (type === "Distributed" ? "Distributed" : "Standard"),
  },
  {
    id: "gpusRequested",
    name: "GPU request",
    width: 104,
    rank: 9,
    isExtra: true,
    isNumber: true,
    sort: "gpusRequested",
    cell: (row) => printGpus(row.gpusRequested),
  },
  {
    id: "gpusAllocated",
    name: "GPU allocation",
    width: 116,
    rank: 9,
    isExtra: true,
    isNumber: true,
    sort: "gpusAllocated",
    cell: (row) => printGpus(row.gpusAllocated),
  },
  {
    id: "createdAt",
    name: "Creation time",
    width: 130,
    rank: 9,
    isExtra: true,
    sort: "createdAt",
    cell: ({ createdAt }) => <Clock at={createdAt} seconds />,
  },
  {
    id: "completedAt",
    name: "Completed",
    width: 110,
    rank: 9,
    isExtra: true,
    sort: "completedAt",
    cell: ({ completedAt }) => completedAt && <Age of={completedAt} />,
  },
];

/** The columns, with the names of departments, which rows have by id. */
export function columnsOf(departments: [id: string, name: string][]): Column<WorkloadRow>[] {
  const names = new Map(departments);
  const department: Column<WorkloadRow> = {
    id: "department",
    name: "Department",
    width: 120,
    rank: 9,
    isExtra: true,
    cell: ({ departmentId }) => names.get(departmentId),
  };
  return [...COLUMNS, department];
}

/** True if it ended, and can be run again. */
export function isEnded(row: WorkloadRow): boolean {
  return ENDED.has(row.phase);
}
