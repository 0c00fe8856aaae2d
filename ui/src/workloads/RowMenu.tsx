// The actions of one workload as a menu at its row.
import { MenuAt } from "../kit/Menu";
import type { WorkloadRow } from "../live/rows";
import { type ActionName } from "./Act";

/** Keys that open the pane of a row at one of its tabs. */
export const TAB_KEYS: Record<string, string> = { e: "explain", d: "details" };

const KEY_OF: Record<ActionName, string> = { STOP: "s", RUN: "r", DELETE: "Del" };

interface Props {
  row: WorkloadRow;
  actions: ActionName[];
  /** The cell that has the focus. */
  cell: Element | null;
  onAct: (action: ActionName) => void;
  onOpen: (tab: string) => void;
  onClose: () => void;
}

export function RowMenu({ row, actions, cell, onAct, onOpen, onClose }: Props): React.ReactNode {
  return (
    <MenuAt
      element={cell}
      name={`Actions of ${row.name}`}
      onClose={onClose}
      actions={[
        ...actions.map((action) => ({
          id: action,
          name: action,
          keys: KEY_OF[action],
          run: () => onAct(action),
        })),
        { id: "explain", name: "Explain", keys: "e", isFirst: true, run: () => onOpen("explain") },
        { id: "details", name: "Details", keys: "d", run: () => onOpen("details") },
      ]}
    />
  );
}
