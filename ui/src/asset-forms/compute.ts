// Compute resources in words.
import type { ComputeAsset } from "../api/types";
import { countGpus, printGpus } from "../kit/Status";

/** `100M` as `100 MB`, `20Gi` as `20 GiB`. */
export function printQuantity(quantity: string): string {
  return quantity.replace(/^([\d.]+)([kKMGTP]i?)$/u, "$1 $2B");
}

/** The GPUs of a pod: `1 GPU`, `50 % of 1 GPU`, `20 GiB of each of 2 GPUs`. */
export function printCompute(spec: ComputeAsset["spec"]): string {
  const { gpuDevicesRequest, gpuPortionRequest, gpuMemoryRequest } = spec;
  const devices = gpuDevicesRequest ?? 0;
  if (devices === 0) return "no GPU";
  const portion = gpuPortionRequest ?? 1;
  if (!gpuMemoryRequest && portion >= 1) return countGpus(devices);
  const part = gpuMemoryRequest ? printQuantity(gpuMemoryRequest) : `${printGpus(portion * 100)} %`;
  return `${part} of ${devices === 1 ? "1 GPU" : `each of ${devices} GPUs`}`;
}
