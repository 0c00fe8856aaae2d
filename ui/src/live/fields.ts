// Values of workloads by the keys of conditions and of sort, as the API has them.
import type { WorkloadKey } from "../api/types";
import { valueAt } from "./conditions";
import { CATEGORIES, type WorkloadRow } from "./rows";

/** Values that are not in the row itself. */
export interface Lookup {
  /** The code of its first reason. */
  whyOf: (row: WorkloadRow) => string | undefined;
  departmentOf: (row: WorkloadRow) => string | undefined;
}

type Value = (row: WorkloadRow, of: Lookup) => unknown;

/** Keys of the API that are no members of a row; no condition on one that is not in rows holds. */
const OF_API: Record<Exclude<WorkloadKey, keyof WorkloadRow>, Value | "not in rows"> = {
  departmentName: (row, of) => of.departmentOf(row),
  category: ({ type }) => CATEGORIES[type],
  architecture: ({ type }) => (type === "Distributed" ? "Distributed" : "Standard"),
  allocatedGPU: ({ gpusAllocated }) => gpusAllocated,
  requestedGPU: ({ gpusRequested }) => gpusRequested,
  allocatedGPUMemory: ({ gpuMemoryAllocated }) => gpuMemoryAllocated,
  requestedGPUMemory: ({ gpuMemoryRequested }) => gpuMemoryRequested,
  allocatedCPU: ({ cpuAllocated }) => cpuAllocated,
  requestedCPU: ({ cpuRequested }) => cpuRequested,
  allocatedCPUMemory: ({ memoryAllocated }) => memoryAllocated,
  requestedCPUMemory: ({ memoryRequested }) => memoryRequested,
  runningPods: ({ podsRunning }) => podsRunning,
  requestedPods: ({ podsRequested }) => podsRequested,
  nodepool: ({ nodePools }) => nodePools,
  images: ({ image }) => image,
  environments: ({ environment }) => environment,
  datasources: ({ dataSources }) => dataSources,
  clusterId: "not in rows",
  deletedAt: "not in rows",
  source: "not in rows",
  distributedFramework: "not in rows",
  idleGpus: "not in rows",
  idleAllocatedGpus: "not in rows",
  idleTimeSeconds: "not in rows",
  priority: "not in rows",
  totalPendingTimeSeconds: "not in rows",
  totalRunningTimeSeconds: "not in rows",
  labels: "not in rows",
  qualifiedName: "not in rows",
  activity: "not in rows",
};

const BY_KEY: Record<string, Value | "not in rows"> = {
  ...OF_API,
  why: (row, of) => of.whyOf(row),
};

/** The value of a workload for a key of the API, or of a column. */
export function workloadValue(row: WorkloadRow, key: string, of: Lookup): unknown {
  const value = BY_KEY[key];
  if (value === undefined) return valueAt(row, key);
  return value === "not in rows" ? undefined : value(row, of);
}

/** The value that orders a row; undefined for what is missing or empty. */
function keyOf(value: unknown): string | number | undefined {
  if (typeof value === "number") return value;
  const text = value === undefined || value === null ? "" : String(value);
  return text === "" ? undefined : text;
}

/**
 * Orders two values: numbers by size, texts by their characters as the API does, lists by their names.
 * Values that are missing are last in both directions.
 */
export function inOrder(one: unknown, other: unknown, sign: 1 | -1 = 1): number {
  const [a, b] = [keyOf(one), keyOf(other)];
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return String(a) < String(b) ? -sign : sign;
}
