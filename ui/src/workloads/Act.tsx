// Stopping, running and deleting a workload; each shows its effect before.
import { request } from "../api/http";
import { Confirm } from "../kit/Dialog";
import { countGpus } from "../kit/Status";
import type { WorkloadRow } from "../live/rows";

export type ActionName = "STOP" | "RUN" | "DELETE";

/** The folder of the API that a workload's actions are in. */
function routeOf({ type, id }: WorkloadRow): string {
  const kind = { Workspace: "workspaces", Distributed: "distributed", Inference: "inferences" }[
    type
  ];
  return `/api/v1/workloads/${kind ?? "trainings"}/${id}`;
}

/** Does it. */
export function run(row: WorkloadRow, action: ActionName): Promise<unknown> {
  switch (action) {
    case "STOP":
      return request("POST", `${routeOf(row)}/suspend`);
    case "RUN":
      return request("POST", `${routeOf(row)}/resume`);
    case "DELETE":
      return request("DELETE", routeOf(row));
  }
}

interface Props {
  row: WorkloadRow;
  action: ActionName;
  onClose: () => void;
}

export function Act({ row, action, onClose }: Props): React.ReactNode {
  const held = row.gpusAllocated > 0 ? `It holds ${countGpus(row.gpusAllocated)}.` : "";
  const said = {
    STOP: `${held} What it did since its last checkpoint is lost. RUN starts it again.`,
    RUN: `It asks for ${countGpus(row.gpusRequested)}.`,
    DELETE: `${held} Its output goes with it. Its events are kept.`,
  }[action];
  const verb = { STOP: "Stop", RUN: "Run", DELETE: "Delete" }[action];
  return (
    <Confirm
      title={`${verb} ${row.name} of ${row.projectName}`}
      action={action}
      onClose={onClose}
      onConfirm={() => run(row, action)}
    >
      <p className="muted">{said}</p>
    </Confirm>
  );
}
