// Messages between a tab and the worker that reads the stream.
import type { Condition } from "./conditions";
import type { Kind, Kinds, WorkloadRow } from "./rows";

/** View of a kind that a tab requests. */
export interface ViewSpec<K extends Kind = Kind> {
  kind: K;
  /** Conditions of what the list is of: no filter, but a part of the kind. */
  always?: Condition[] | undefined;
  conditions?: Condition[];
  /** Conditions of which one has to hold. */
  anyOf?: Condition[] | undefined;
  /** Words that have to occur in one of the searched fields. */
  search?: string;
  sort?: string;
  descending?: boolean;
  /** The first row, and the one behind the last. All of them without. */
  from?: number;
  to?: number;
  /** Rows keep their places: new ones are counted, and those that no longer match stay. */
  frozen?: boolean;
  /** Id of a row that is shown even so: what the user just made or opened. */
  chosen?: string | undefined;
}

/** An object with the version by which a tab knows whether it has it already. */
export interface Versioned<T> {
  version: number;
  object: T;
  /** In a frozen view: it was deleted or does not match any more. */
  gone?: boolean;
}

/** The answer to a view. */
export interface ViewAnswer<T> {
  /** How many rows match. */
  total: number;
  /** How many there are without filters. */
  all: number;
  /** How many new rows a frozen view does not show yet. */
  fresh: number;
  from: number;
  /** Key of the order and of the filters that it has. */
  order: string;
  rows: Versioned<T>[];
  /** Where no row matches: the filter to remove, if one alone is enough for a row. */
  excludes: Excluding | undefined;
}

/** The filter without which most rows match. */
export interface Excluding {
  /** Without a condition it is the search. */
  condition: Condition | undefined;
  /** How many rows match without it. */
  rows: number;
}

/** How the connection stands. */
export type Connection =
  | { state: "connecting" }
  | { state: "catching-up"; objects: number }
  | { state: "live" }
  /** `retryAt` is by the browser's clock. */
  | { state: "waiting"; why: string; retryAt: number }
  | { state: "logged-out" };

/** Counts over all workloads, which no view gives. */
export interface WorkloadCounts {
  phases: Record<string, number>;
  gpusAllocated: number;
  /** Workloads that wait for places, and the GPUs that they ask for. */
  workloadsWaiting: number;
  gpusWaiting: number;
  /** By the code of the first reason, with a sentence of it; `alike` if all have this one. */
  waiting: { code: string; message: string; alike: boolean; count: number; gpus: number }[];
  /** The newest, newest first. */
  happened: Happening[];
}

/** A workload entered the phase that it has, or was evicted, moved or resized. */
export interface Happening {
  what: "phase" | "eviction";
  at: string;
  row: WorkloadRow;
}

export type ToWorker =
  | { type: "hello"; secret: string | null }
  | { type: "view"; view: number; spec: ViewSpec }
  | { type: "counts"; view: number }
  /** All rows of a view, in its order: for what is picked beyond the screen. */
  | { type: "ids"; view: number; request: number }
  | { type: "drop"; view: number }
  | { type: "retry" }
  | { type: "bye" };

export type FromWorker =
  | { type: "connection"; connection: Connection }
  /** The caller may see more, or less, than before. */
  | { type: "access" }
  /** An error of the worker itself. */
  | { type: "fault"; text: string }
  | { type: "view"; view: number; answer: ViewAnswer<Kinds[Kind]> }
  | { type: "counts"; view: number; counts: WorkloadCounts }
  | { type: "ids"; view: number; request: number; ids: string[] };
