// Rows of the change stream with `shape=row`: what grids show of an object.
import type { Scope } from "../api/rights";
import type {
  ComputeAsset,
  EnvironmentAsset,
  Gpu,
  LiveEvent,
  Node,
  NodePoolQuota,
  Project,
  QuotaStatus,
  Reason,
} from "../api/types";

/** Why a workload waits: a reason of its own, or the id of one that many share. */
export type Why = Reason | { reason: string; at: string };

/** A workload as a grid shows it. Amounts of GPUs are in whole GPUs. */
export interface WorkloadRow {
  id: string;
  name: string;
  type: string;
  phase: string;
  /** Left out by the stream where it is the time of the submission. */
  phaseUpdatedAt: string;
  projectId: string;
  projectName: string;
  departmentId: string;
  submittedBy: string;
  createdAt: string;
  completedAt?: string;
  priorityClassName: string;
  preemptible: boolean;
  gpusRequested: number;
  podsRequested: number;
  nodePools: string[];
  gpusAllocated: number;
  /** Bytes of each GPU. */
  gpuMemoryRequested?: number;
  /** Bytes of all of them. */
  gpuMemoryAllocated: number;
  /** Since when its GPUs do not compute. */
  idleSince?: string;
  /** Cores. */
  cpuRequested: number;
  cpuAllocated: number;
  /** Bytes. */
  memoryRequested: number;
  memoryAllocated: number;
  image: string;
  environment?: string;
  computeResource?: string;
  template?: string;
  dataSources: string[];
  connections: string[];
  podsRunning: number;
  overQuota: boolean;
  nodes: string[];
  nodesCount: number;
  why?: Why;
  lastEviction?: Reason;
  /** Set by the worker: the reasons behind `why`, most important first. */
  reasons?: Reason[];
}

/** Category of each type of workload. */
export const CATEGORIES: Record<string, string> = {
  Training: "Train",
  Distributed: "Train",
  Workspace: "Build",
  Inference: "Deploy",
};

/** Values of a row that the stream leaves out where they are so. */
export const NOTHING = {
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
} satisfies Partial<WorkloadRow>;

/** Reasons that some workloads share. */
export interface SharedReason {
  id: string;
  reasons: Reason[];
}

/** The server itself. */
export interface ServerRow {
  id: string;
  version: string;
  interface: string;
  clusterId: string;
  clusterName: string;
  now: string;
  outage?: { message: string; since: string };
}

/** A pod, as in `GET /api/v1/workloads/pods`: what is shown of it here. */
export interface PodRow {
  id: string;
  name: string;
  workloadId: string;
  workloadName: string;
  projectName: string;
  createdAt: string;
  k8sPhase: string;
  state?: string;
  nodeName?: string;
  restarts?: number;
  gpus?: unknown[];
  containers: { name: string; image: string }[];
  requestedResources?: { gpu?: { request?: number } };
  allocatedResources?: { gpu?: number };
}

/** A department: what is shown of it here. */
export interface DepartmentRow {
  id: string;
  name: string;
  totalResources: { gpuQuota: number };
  status: { quotaStatus: QuotaStatus; nodePoolQuotaStatuses: NodePoolQuota[] };
}

/** A template: what is shown of it here. */
export interface TemplateRow {
  meta: { id: string; name: string; description?: string; workloadType: string } & Scope;
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
  pod: PodRow;
  reason: SharedReason;
  project: Project;
  department: DepartmentRow;
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
