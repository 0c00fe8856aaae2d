// Rows of the change stream with `shape=row`: what grids show of an object.
import type { Scope } from "../api/rights";
import type {
  Categories,
  ComputeAsset,
  DepartmentForList,
  EnvironmentAsset,
  Gpu,
  LiveEvent,
  Node,
  Phases,
  Pod1 as Pod,
  Project,
  Reason,
  ServerRow,
  SharedReason,
  WorkloadGridRow,
  WorkloadTemplate,
} from "../api/types";

/** Members of a row that the stream leaves out where they are 0, false or empty. */
type LeftOut<Row> = {
  [
    K in keyof Row as undefined extends Row[K] ? (null extends Row[K] ? never : K) : never
  ]-?: Row[K];
};

/** Zero, false or empty, by the type of a member. */
type Nothing<T> = T extends number
  ? 0
  : T extends string
    ? ""
    : T extends boolean
      ? false
      : T extends unknown[]
        ? []
        : never;

/** Values of a row that the stream leaves out where they are so. */
export const NOTHING: {
  [K in keyof LeftOut<WorkloadGridRow>]: Nothing<LeftOut<WorkloadGridRow>[K]>;
} = {
  gpusAllocated: 0,
  gpuMemoryAllocated: 0,
  cpuRequested: 0,
  cpuAllocated: 0,
  memoryRequested: 0,
  memoryAllocated: 0,
  image: "",
  dataSources: [],
  connections: [],
  podsRunning: 0,
  overQuota: false,
  nodePools: [],
  nodes: [],
  nodesCount: 0,
};

/** A workload as a grid shows it, with what the stream leaves out. GPUs are whole GPUs. */
export type WorkloadRow = WorkloadGridRow &
  LeftOut<WorkloadGridRow> & {
    phaseUpdatedAt: string;
    /** Set by the worker: the reasons behind `why`, most important first. */
    reasons?: Reason[];
  };

/** Category of each type of workload. */
export const CATEGORIES: Record<string, string> = {
  Training: "Train",
  Workspace: "Build",
  Distributed: "Train",
  Inference: "Deploy",
} satisfies Categories;

/** Phases of a workload: if it waits for places in them, and if it has ended for good. */
const ALL_PHASES: Phases = {
  Creating: { waits: false, isOver: false },
  Pending: { waits: true, isOver: false },
  Resuming: { waits: true, isOver: false },
  Initializing: { waits: false, isOver: false },
  Running: { waits: false, isOver: false },
  Degraded: { waits: false, isOver: false },
  Updating: { waits: false, isOver: false },
  Stopping: { waits: false, isOver: false },
  Stopped: { waits: false, isOver: false },
  Deleting: { waits: false, isOver: false },
  Terminating: { waits: false, isOver: false },
  Completed: { waits: false, isOver: true },
  Failed: { waits: false, isOver: true },
};

/** Names of the phases, in the order of a workload's life. */
export const PHASES = Object.keys(ALL_PHASES);

function phaseOf(name: string): Phases[keyof Phases] | undefined {
  return ALL_PHASES[name as keyof Phases];
}

/** True if a workload of this phase waits for places. */
export function waits(phase: string): boolean {
  return phaseOf(phase)?.waits ?? false;
}

/** True if a workload of this phase has ended for good. */
export function isOver(phase: string): boolean {
  return phaseOf(phase)?.isOver ?? false;
}

/** A template, whose values are what a creation of its type takes. */
export interface TemplateRow extends WorkloadTemplate {
  meta: WorkloadTemplate["meta"] & Scope;
  spec: {
    image?: string;
    command?: string;
    args?: string;
    compute?: ComputeAsset["spec"];
    assets?: { environment?: string; compute?: string };
    [field: string]: unknown;
  };
}

/** Type of the objects of each kind in the stream. */
export interface Kinds {
  workload: WorkloadRow;
  pod: Pod;
  reason: SharedReason;
  project: Project;
  department: DepartmentForList;
  node: Node;
  gpu: Gpu;
  "node-pool": { id: string; name: string };
  asset: EnvironmentAsset | ComputeAsset;
  template: TemplateRow;
  server: ServerRow;
  /** Events since the connection was opened, the last of them. */
  event: LiveEvent;
}

export type Kind = keyof Kinds;

/** Every kind: the worker asks for all of them. */
export const KINDS = Object.keys({
  workload: true,
  pod: true,
  reason: true,
  project: true,
  department: true,
  node: true,
  gpu: true,
  "node-pool": true,
  asset: true,
  template: true,
  server: true,
  event: true,
} satisfies Record<Kind, true>).join(",");
