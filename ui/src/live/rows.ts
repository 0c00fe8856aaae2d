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
