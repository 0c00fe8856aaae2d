// Stopping, running and deleting a workload: who may do it, and what it does.
import { request } from "../api/http";
import { type Action, may, type SessionInfo } from "../api/rights";
import { Confirm } from "../kit/Dialog";
import { countGpus } from "../kit/Status";
import { waits, type WorkloadRow } from "../live/rows";
import { isEnded } from "./columns";

export const ACTIONS = ["STOP", "RUN", "DELETE"] as const;
export type ActionName = (typeof ACTIONS)[number];

interface KindOfWorkload {
  /** The folder of the API that its actions are in. */
  path: string;
  /** In the words of roles. */
  resource: string;
  /** It runs until it is deleted. */
  isEndless?: boolean;
}

const TRAINING: KindOfWorkload = { path: "trainings", resource: "trainings" };
const KINDS: Partial<Record<string, KindOfWorkload>> = {
  Training: TRAINING,
  Distributed: { path: "distributed", resource: "trainings" },
  Workspace: { path: "workspaces", resource: "workspaces" },
  Inference: { path: "inferences", resource: "inferences", isEndless: true },
};

/** Actions that the state of a workload and the rights of the caller allow. */
export function actionsOf(info: SessionInfo | null | undefined, row: WorkloadRow): ActionName[] {
  const { departmentId, projectId, submittedBy: madeBy, createdAt: madeAt, type } = row;
  const { resource, isEndless } = KINDS[type] ?? TRAINING;
  const mayDo = (action: Action) =>
    may(info, resource, action, { departmentId, projectId, madeBy, madeAt });
  const turn = isEnded(row) ? "RUN" : "STOP";
  const allowed = {
    STOP: turn === "STOP" && !isEndless && mayDo("update"),
    RUN: turn === "RUN" && !isEndless && mayDo("update"),
    DELETE: mayDo("delete"),
  };
  return ACTIONS.filter((action) => allowed[action]);
}

/** True if the caller may change workloads of some kind in some scope. */
export function mayAct(info: SessionInfo | null | undefined): boolean {
  return Object.values(KINDS).some(
    (kind) => kind && (may(info, kind.resource, "update") || may(info, kind.resource, "delete")),
  );
}

function routeOf({ type, id }: WorkloadRow): string {
  return `/api/v1/workloads/${(KINDS[type] ?? TRAINING).path}/${id}`;
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
    STOP: `${held} ${waits(row.phase) ? "" : "What it did since its last checkpoint is lost. "}RUN starts it again.`,
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
