// The table of keys: what `?` lists, and what the keys of every page do.

/** A key, or keys one after the other, and what they do. */
export interface KeyRow {
  /** As `?` shows them. */
  keys: string;
  what: string;
  /** What is typed, if a key of every page does it; grids and panes have keys of their own. */
  typed?: string;
  /** The page that it leads to. */
  to?: string;
  /** What it presses: the first that is visible. */
  presses?: string;
}

/** The names of buttons that keys press begin so. */
const named = (name: string) => `button[aria-label^="${name}"]`;
const tab = (id: string) => `[role=tab][data-key="${id}"]`;

export const KEYS: KeyRow[] = [
  { keys: "Ctrl K", what: "Jump to a page, workload or project, or run a command" },
  { keys: "?", what: "Keys", typed: "?" },
  { keys: "g o", what: "Overview", typed: "go", to: "/overview" },
  { keys: "g w", what: "Workloads", typed: "gw", to: "/workloads" },
  { keys: "g p", what: "Projects", typed: "gp", to: "/projects" },
  { keys: "g n", what: "Nodes", typed: "gn", to: "/nodes" },
  { keys: "c t", what: "New training", typed: "ct", to: "/workloads/new/training" },
  { keys: "/", what: "Search in this list", typed: "/", presses: "[type=search]" },
  { keys: "f", what: "Add a filter", typed: "f", presses: named("Filter by") },
  { keys: "v", what: "Views", typed: "v", presses: named("Views") },
  { keys: "R", what: "Show new rows" },
  { keys: "↑ ↓ j k", what: "Rows" },
  { keys: "Enter", what: "Open the pane" },
  { keys: "Ctrl Enter", what: "Open as a page, of the row or the pane" },
  { keys: "e", what: "Explain, of the pane or the row", typed: "e", presses: tab("explain") },
  { keys: "d", what: "Details, of the pane or the row", typed: "d", presses: tab("details") },
  { keys: "[ ]", what: "Pane narrower, wider" },
  { keys: "Esc", what: "Close" },
  { keys: "x, Space", what: "Pick a row" },
  { keys: "Shift ↑ ↓", what: "Pick a range" },
  { keys: "Ctrl A", what: "Pick all that match" },
  { keys: ".", what: "Actions of the row" },
  { keys: "s r Del", what: "Stop, run, delete a workload" },
  { keys: "Shift ← →", what: "In the header: narrower, wider" },
  { keys: "Alt ← →", what: "In the header: moves the column" },
];
