// Rows of the change stream with `shape=row`: what grids show of an object.
import type { Scope } from "../api/rights";
import type {
  ComputeAsset,
  EnvironmentAsset,
  Gpu,
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
  gpusAllocated: number;
  podsRequested: number;
  podsRunning: number;
  overQuota: boolean;
  nodePools: string[];
  nodes: string[];
  nodesCount: number;
  why?: Why;
  lastEviction?: Reason;
  /** Set by the worker: the reasons behind `why`, most important first. */
  reasons?: Reason[];
}

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
}

export type Kind = keyof Kinds;
