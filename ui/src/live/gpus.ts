// Sums over GPUs that several pages show.
import type { Gpu, Node } from "../api/types";

/** GPUs that workloads may get: free parts of those in service, on nodes that take workloads. */
export function freeGpus(nodes: Node[], gpus: Gpu[]): number {
  const open = new Set(
    nodes
      .filter(({ status, scheduling }) => status.startsWith("Ready") && scheduling === "enabled")
      .map(({ name }) => name),
  );
  return gpus.reduce((sum, { nodeName, fault, allocated }) => {
    return fault || !open.has(nodeName) ? sum : sum + 1 - allocated;
  }, 0);
}
