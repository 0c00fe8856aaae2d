// Stopping, running and deleting several workloads at once; shows their number and GPUs before.
import { useState } from "react";

import { useSession } from "../api/session";
import { Button } from "../kit/Button";
import { Confirm } from "../kit/Dialog";
import { countGpus } from "../kit/Status";
import { useView } from "../live/client";
import type { Picked } from "../live/picked";
import type { WorkloadRow } from "../live/rows";
import { type ActionName, ACTIONS, actionsOf, run } from "./Act";

/** Requests on their way at the same time. */
const AT_ONCE = 4;
/** Workloads that are named; the others are counted. */
const NAMED = 5;

const VERBS = { STOP: "Stop", RUN: "Run", DELETE: "Delete" };

/** Acts on all of them; those that fail do not keep the others. */
async function runAll(rows: WorkloadRow[], action: ActionName): Promise<void> {
  const left = [...rows];
  const failures: string[] = [];
  const work = async () => {
    for (let row = left.pop(); row; row = left.pop()) {
      await run(row, action).catch(({ message }: Error) => failures.push(message));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (failures.length === 0) return;
  throw new Error(`${failures.length} of ${rows.length} failed: ${failures[0]}`);
}

/** The actions that are allowed on some of the workloads that are picked. */
export function ActMany({ picked }: { picked: Picked }): React.ReactNode {
  const { info } = useSession();
  const [chosen, setChosen] = useState<ActionName>();
  const id = { field: "id", operator: "==" as const, value: [...picked.ids].join("|") };
  const found = useView({ kind: "workload", conditions: [id], sort: "name" });
  const byAction = new Map<ActionName, WorkloadRow[]>(ACTIONS.map((action) => [action, []]));
  for (const { object } of found?.rows ?? []) {
    for (const action of actionsOf(info, object)) byAction.get(action)?.push(object);
  }
  return (
    <>
      {ACTIONS.filter((action) => byAction.get(action)?.length).map((action) => (
        <Button key={action} onPress={() => setChosen(action)}>
          {action}
        </Button>
      ))}
      {chosen && (
        <ConfirmMany
          rows={byAction.get(chosen) ?? []}
          picked={picked}
          action={chosen}
          onClose={() => setChosen(undefined)}
        />
      )}
    </>
  );
}

interface Props {
  rows: WorkloadRow[];
  picked: Picked;
  action: ActionName;
  onClose: () => void;
}

function ConfirmMany({ rows, picked, action, onClose }: Props): React.ReactNode {
  const held = rows.reduce((sum, row) => sum + row.gpusAllocated, 0);
  const names = rows.slice(0, NAMED).map(({ name }) => name);
  const more = rows.length - names.length;
  const others = picked.ids.size - rows.length;
  return (
    <Confirm
      title={`${VERBS[action]} ${rows.length} ${rows.length === 1 ? "workload" : "workloads"}`}
      action={action}
      onClose={onClose}
      onConfirm={() => runAll(rows, action).then(picked.clear)}
    >
      <p>
        {names.join(", ")}
        {more > 0 && ` and ${more} more`}
      </p>
      {others > 0 && (
        <p>
          Left as before: {others} {others === 1 ? "other" : "others"} to which it does not apply,
          or where your roles do not allow it.
        </p>
      )}
      <p className="muted">
        {held > 0 && `They hold ${countGpus(held)}. `}
        {action === "STOP" && "What they did since their last checkpoints is lost."}
        {action === "DELETE" && "Their output goes with them. Their events are kept."}
      </p>
    </Confirm>
  );
}
