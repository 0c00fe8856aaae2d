// Columns of the grid of workloads.
import type { Column } from "../kit/grid/columns";
import { Code, printBytes, printGpus, Status } from "../kit/Status";
import { Age, Clock } from "../kit/time";
import { CATEGORIES, isOver, type WorkloadRow, waits } from "../live/rows";

/** Why it waits, was stopped or failed; the code first, since the end is what gets cut. */
export function Why({ of: row }: { of: WorkloadRow }): React.ReactNode {
  const [first] = row.reasons ?? [];
  if (row.phase === "Running") {
    return <span className="muted">{row.overQuota ? "over quota" : "in quota"}</span>;
  }
  if (!first && !row.lastEviction) return null;
  return (
    <>
      {row.lastEviction && waits(row.phase) && (
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

/** Columns of the requested and the allocated amount of a resource. */
function amounts(
  of: "cpu" | "memory" | "gpuMemory",
  name: string,
  print: (amount: number) => string,
  request = "request",
): Column<WorkloadRow>[] {
  const kinds = [
    ["Requested", request],
    ["Allocated", "allocation"],
  ] as const;
  return kinds.map(([kind, word]) => ({
    id: `${of}${kind}`,
    name: `${name} ${word}`,
    width: 120,
    rank: 9,
    isExtra: true,
    isNumber: true,
    sort: `${of}${kind}`,
    cell: (row) => {
      const amount = row[`${of}${kind}`];
      return typeof amount === "number" ? print(amount) : undefined;
    },
  }));
}

/** A column of a text. */
function text(id: string, name: string, cell: Column<WorkloadRow>["cell"]): Column<WorkloadRow> {
  return { id, name, width: 130, rank: 9, isExtra: true, sort: id, cell };
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
    sort: "nodes",
    cell: ({ nodes, nodesCount }) =>
      nodesCount > nodes.length ? `${nodes.join(", ")}, … (${nodesCount})` : nodes.join(", "),
  },
  {
    id: "nodePools",
    name: "Node pools",
    width: 110,
    rank: 9,
    isExtra: true,
    sort: "nodePools",
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
    sort: "architecture",
    cell: ({ type }) => (type === "Distributed" ? "Distributed" : "Standard"),
  },
  {
    id: "category",
    name: "Category",
    width: 90,
    rank: 9,
    isExtra: true,
    sort: "category",
    cell: ({ type }) => CATEGORIES[type],
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
  ...amounts("gpuMemory", "GPU memory", printBytes, "request per GPU"),
  {
    id: "idle",
    name: "Idle GPUs",
    width: 110,
    rank: 9,
    isExtra: true,
    isNumber: true,
    sort: "idleSince",
    cell: ({ idleSince, gpusAllocated }) =>
      idleSince && (
        <>
          {printGpus(gpusAllocated)} · <Age of={idleSince} />
        </>
      ),
  },
  ...amounts("cpu", "CPU", printGpus),
  ...amounts("memory", "CPU memory", printBytes),
  text("environment", "Environment", (row) => row.environment),
  text("image", "Image", ({ image }) => <span title={image}>{image}</span>),
  text("computeResource", "Compute resource", (row) => row.computeResource),
  text("template", "Template", (row) => row.template),
  text("dataSources", "Data sources", (row) => row.dataSources.join(", ")),
  text("connections", "Connections", (row) => row.connections.join(", ")),
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

/** The columns, with the names of the cluster and of departments, which rows have by id. */
export function columnsOf(
  departments: [id: string, name: string][],
  cluster: string | undefined,
): Column<WorkloadRow>[] {
  const names = new Map(departments);
  const department: Column<WorkloadRow> = {
    id: "department",
    name: "Department",
    width: 120,
    rank: 9,
    isExtra: true,
    sort: "departmentName",
    cell: ({ departmentId }) => names.get(departmentId),
  };
  // There is one cluster: nothing to sort by.
  const { sort: _sort, ...inCluster } = text("cluster", "Cluster", () => cluster);
  return [...COLUMNS, department, inCluster];
}

/** True if it ended, and can be run again. */
export function isEnded(row: WorkloadRow): boolean {
  return isOver(row.phase) || row.phase === "Stopped";
}
