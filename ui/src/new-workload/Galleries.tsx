// The galleries of environments and compute resources, with the sheets that make a new one.
import { useState } from "react";

import { useMay } from "../api/session";
import type { ComputeAsset, EnvironmentAsset } from "../api/types";
import { ComputeForm, EnvironmentForm } from "../asset-forms/AssetForm";
import { Button } from "../kit/Button";
import page from "../kit/page.module.css";
import { printGpus } from "../kit/Status";
import { TileGroup } from "../kit/TileGroup";
import { useAll, useSome } from "../live/client";
import type { Draft } from "./draft";

interface Props {
  draft: Draft;
  change: (next: Partial<Draft>) => void;
  tried: boolean;
}

/** True if trainings may use an asset: all may use one that names no kind of workload. */
function isForTrainings({ meta }: EnvironmentAsset | ComputeAsset): boolean {
  const { training, workspace, inference, distributed } = meta.workloadSupportedTypes ?? {};
  return training === true || !(workspace || inference || distributed);
}

export function Galleries({ draft, change, tried }: Props): React.ReactNode {
  const [sheet, setSheet] = useState<"environment" | "compute">();
  const assets = useAll("asset", "meta.name") ?? [];
  const id = { field: "id", operator: "==" as const, value: draft.projectId ?? "" };
  const project = useSome({ kind: "project", conditions: [id], to: 1 })?.objects[0];
  const place = { projectId: project?.id, departmentId: project?.parentId };
  const mayEnvironment = useMay("environments", "create", place);
  const mayCompute = useMay("compute-resources", "create", place);
  const usable = assets.filter(
    ({ meta }) => meta.scope !== "project" || String(meta.projectId) === draft.projectId,
  );
  const environments = usable.filter(
    (asset): asset is EnvironmentAsset =>
      asset.meta.kind === "environment" && isForTrainings(asset),
  );
  const compute = usable.filter(
    (asset): asset is ComputeAsset => asset.meta.kind === "compute" && isForTrainings(asset),
  );
  const common = { onClose: () => setSheet(undefined), projectId: project?.id };
  return (
    <>
      <div className={page.stack}>
        <TileGroup
          label="Environment"
          tiles={environments.map(({ meta, spec }) => ({
            id: meta.id,
            name: meta.name,
            detail: spec.image ?? "",
          }))}
          value={draft.environment}
          onChange={(environment) => change({ environment })}
          problem={tried && !draft.environment ? "choose an environment" : undefined}
        />
        {mayEnvironment && (
          <div>
            <Button onPress={() => setSheet("environment")}>+NEW ENVIRONMENT</Button>
          </div>
        )}
      </div>
      <div className={page.stack}>
        <TileGroup
          label="Compute resource"
          tiles={compute.map(({ meta, spec }) => ({
            id: meta.id,
            name: meta.name,
            detail: detail(spec),
          }))}
          value={draft.compute}
          onChange={(chosen) => change({ compute: chosen })}
          problem={tried && !draft.compute ? "choose a compute resource" : undefined}
        />
        {mayCompute && (
          <div>
            <Button onPress={() => setSheet("compute")}>+NEW COMPUTE RESOURCE</Button>
          </div>
        )}
      </div>
      {sheet === "environment" && (
        <EnvironmentForm {...common} onCreated={(environment) => change({ environment })} />
      )}
      {sheet === "compute" && (
        <ComputeForm {...common} onCreated={(made) => change({ compute: made })} />
      )}
    </>
  );
}

function detail({ gpuDevicesRequest, gpuPortionRequest, gpuMemoryRequest }: ComputeAsset["spec"]) {
  const devices = gpuDevicesRequest ?? 0;
  if (devices === 0) return "no GPU";
  const part = gpuMemoryRequest ?? `${printGpus((gpuPortionRequest ?? 1) * 100)} %`;
  return `${devices} ${devices === 1 ? "GPU" : "GPUs"}, ${part} of each`;
}
