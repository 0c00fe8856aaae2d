// The galleries of environments and compute resources, with the sheets that make a new one.
import { useState } from "react";

import type { Place } from "../api/rights";
import { useMay } from "../api/session";
import { ComputeForm, EnvironmentForm } from "../asset-forms/AssetForm";
import { Button } from "../kit/Button";
import page from "../kit/page.module.css";
import { TileGroup } from "../kit/TileGroup";
import type { Gallery } from "./choices";
import type { Draft } from "./draft";

interface Props {
  draft: Draft;
  place: Place;
  environment: Gallery;
  compute: Gallery;
  change: (next: Partial<Draft>) => void;
  tried: boolean;
}

export function Galleries(props: Props): React.ReactNode {
  const { draft, place, environment, compute, change, tried } = props;
  const [sheet, setSheet] = useState<"environment" | "compute">();
  const mayEnvironment = useMay("environments", "create", place);
  const mayCompute = useMay("compute-resources", "create", place);
  const common = { onClose: () => setSheet(undefined), projectId: place.projectId };
  return (
    <>
      <div className={page.stack}>
        <TileGroup
          label="Environment"
          tiles={environment.tiles}
          value={draft.environment}
          onChange={(chosen) => change({ environment: chosen })}
          problem={tried || environment.isGone ? environment.problem : undefined}
          empty={<p className="muted">There is no environment for this project yet.</p>}
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
          tiles={compute.tiles}
          value={draft.compute}
          onChange={(chosen) => change({ compute: chosen })}
          problem={tried || compute.isGone ? compute.problem : undefined}
          empty={<p className="muted">There is no compute resource for this project yet.</p>}
        />
        {mayCompute && (
          <div>
            <Button onPress={() => setSheet("compute")}>+NEW COMPUTE RESOURCE</Button>
          </div>
        )}
      </div>
      {sheet === "environment" && (
        <EnvironmentForm {...common} onCreated={(made) => change({ environment: made })} />
      )}
      {sheet === "compute" && (
        <ComputeForm {...common} onCreated={(made) => change({ compute: made })} />
      )}
    </>
  );
}
