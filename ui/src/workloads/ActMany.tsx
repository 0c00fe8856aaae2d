// Stopping, running and deleting several workloads at once; shows their number and GPUs before.
import { Confirm } from "../kit/Dialog";
import { countGpus } from "../kit/Status";
import { useView } from "../live/client";
import type { WorkloadRow } from "../live/rows";
import { type ActionName, run } from "./Act";
import { isEnded } from "./columns";

/** Requests on their way at the same time. */
const AT_ONCE = 4;
/** Workloads that are named; the others are counted. */
const NAMED = 5;

const VERBS = { STOP: "Stop", RUN: "Run", DELETE: "Delete" };

function applies(action: ActionName, row: WorkloadRow): boolean {
  return action === "DELETE" || isEnded(row) === (action === "RUN");
}

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

interface Props {
  ids: ReadonlySet<string>;
  action: ActionName;
  onClose: () => void;
  onDone: () => void;
}

export function ActMany({ ids, action, onClose, onDone }: Props): React.ReactNode {
  const id = { field: "id", operator: "==" as const, value: [...ids].join("|") };
  const found = useView({ kind: "workload", conditions: [id], sort: "name" });
  if (!found) return null;
  const rows = found.rows.map(({ object }) => object).filter((row) => applies(action, row));
  const held = rows.reduce((sum, row) => sum + row.gpusAllocated, 0);
  const names = rows.slice(0, NAMED).map(({ name }) => name);
  const more = rows.length - names.length;
  return (
    <Confirm
      title={`${VERBS[action]} ${rows.length} ${rows.length === 1 ? "workload" : "workloads"}`}
      action={action}
      onClose={onClose}
      onConfirm={() => runAll(rows, action).then(onDone)}
    >
      <p>
        {names.join(", ")}
        {more > 0 && ` and ${more} more`}
      </p>
      <p className="muted">
        {held > 0 && `They hold ${countGpus(held)}. `}
        {action === "STOP" && "What they did since their last checkpoints is lost."}
        {action === "DELETE" && "Their output goes with them. Their events are kept."}
      </p>
    </Confirm>
  );
}
