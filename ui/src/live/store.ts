// All objects of the stream, and views of them: filtered, sorted, cut. Knows nothing of connections.
import type { SharedReason } from "../api/types";
import { type Condition, test, valueAt } from "./conditions";
import { inOrder, type Lookup, workloadValue } from "./fields";
import type {
  Excluding,
  Happening,
  Versioned,
  ViewAnswer,
  ViewSpec,
  WorkloadCounts,
} from "./protocol";
import { type Kind, type Kinds, NOTHING, waits, type WorkloadRow } from "./rows";

/** Fields that the search box looks in, by kind. */
const SEARCHED: Partial<Record<Kind, string[]>> = {
  workload: ["name", "projectName", "submittedBy", "type", "phase"],
  project: ["name", "parent.name"],
  node: ["name", "nodePool", "gpuInfo.gpuType"],
  asset: ["meta.name", "meta.description", "spec.image"],
};

type Entry = Versioned<Kinds[Kind]>;

/** Maximum number of events that are kept: the log has the others. */
const EVENTS_MAX = 400;

/** The objects of one kind by id. */
type Objects = Map<string, Entry>;

/** One sequence over all stores: a row of a new list is never taken for one of the former. */
let lastVersion = 0;

export class Store {
  #kinds = new Map<string, Objects>();
  /** The version of the last change of each kind. */
  #touched = new Map<string, number>();
  readonly #born = (lastVersion += 1);

  get size(): number {
    let sum = 0;
    for (const objects of this.#kinds.values()) sum += objects.size;
    return sum;
  }

  set(kind: string, id: string, object: Kinds[Kind]): void {
    lastVersion += 1;
    const objects = this.#of(kind);
    const whole = kind === "workload" ? complete(object as WorkloadRow) : object;
    objects.set(id, { version: lastVersion, object: whole });
    if (kind === "event" && objects.size > EVENTS_MAX) {
      for (const oldest of [...objects.keys()].slice(0, EVENTS_MAX / 2)) objects.delete(oldest);
    }
    this.#touched.set(kind, lastVersion);
    if (kind === "reason") this.#renew(id);
  }

  delete(kind: string, id: string): void {
    lastVersion += 1;
    this.#of(kind).delete(id);
    this.#touched.set(kind, lastVersion);
  }

  /** Changes with every change of what a view of this kind shows. */
  stateOf(kind: Kind, sort?: string): string {
    const kinds = kind === "workload" ? [kind, "reason"] : [kind];
    if (sort === "departmentName") kinds.push("department");
    return [this.#born, ...kinds.map((one) => this.#touched.get(one) ?? 0)].join(" ");
  }

  #of(kind: string): Objects {
    let objects = this.#kinds.get(kind);
    if (!objects) this.#kinds.set(kind, (objects = new Map()));
    return objects;
  }

  /** Rows that name a reason are new when it is: tabs see the reasons in the row. */
  #renew(reason: string): void {
    for (const [id, entry] of this.#of("workload")) {
      const { why } = entry.object as WorkloadRow;
      if (why && "reason" in why && why.reason === reason) {
        this.#of("workload").set(id, { version: lastVersion, object: entry.object });
      }
    }
  }

  /** The entry as tabs see it. */
  #shown(kind: string, entry: Entry): Entry {
    if (kind !== "workload") return entry;
    const row = entry.object as WorkloadRow;
    return { version: entry.version, object: { ...row, reasons: this.#reasonsOf(row) } };
  }

  #reasonsOf({ why }: WorkloadRow): WorkloadRow["reasons"] {
    if (!why) return [];
    if (!("reason" in why)) return [why];
    return (this.#of("reason").get(why.reason)?.object as SharedReason | undefined)?.reasons ?? [];
  }

  get<K extends Kind>(kind: K, id: string): Kinds[K] | undefined {
    return this.#of(kind).get(id)?.object as Kinds[K] | undefined;
  }

  /** Answers a view. `before` is the order it had, which a frozen view keeps; it is replaced. */
  view(spec: ViewSpec, before: { order: string[] }): ViewAnswer<Kinds[Kind]> {
    const objects = this.#of(spec.kind);
    const { order, all } = this.#order(spec);
    let fresh = 0;
    let matching: Set<string> | undefined;
    const placed = new Set(before.order);
    const { chosen } = spec;
    const mustShow = chosen !== undefined && !placed.has(chosen) && order.includes(chosen);
    if (spec.frozen && placed.size > 0 && !mustShow) {
      fresh = order.filter((id) => !placed.has(id)).length;
      matching = new Set(order);
    } else {
      before.order = order;
    }
    const from = Math.max(0, spec.from ?? 0);
    const rows: Entry[] = [];
    for (const id of before.order.slice(from, spec.to)) {
      const entry = objects.get(id);
      if (entry) {
        const shown = this.#shown(spec.kind, entry);
        rows.push(matching && !matching.has(id) ? { ...shown, gone: true } : shown);
      } else {
        const object = { id, name: "", meta: { id, name: "" } } as unknown as Kinds[Kind];
        rows.push({ version: -1, object, gone: true });
      }
    }
    const { conditions, search, sort, descending } = spec;
    const key = JSON.stringify([conditions, search, sort, descending]);
    const total = before.order.length;
    const excludes = total === 0 ? this.#mostExcluding(spec) : undefined;
    return { total, all, fresh, from, order: key, rows, excludes };
  }

  /** The ids that match, in their order, and how many there are without filters. */
  #order(spec: ViewSpec): { order: string[]; all: number } {
    const belongs = partOf(spec, this.#value);
    const filters = filtersOf(spec, this.#value);
    let all = 0;
    const alternatives = spec.anyOf?.map(testsOf(spec.kind, this.#value));
    const found: { id: string; key: unknown }[] = [];
    for (const [id, { object }] of this.#of(spec.kind)) {
      if (!belongs(object)) continue;
      all += 1;
      if (!filters.every((holds) => holds(object))) continue;
      if (alternatives && !alternatives.some((holds) => holds(object))) continue;
      found.push({ id, key: spec.sort ? this.#value(spec.kind, object, spec.sort) : undefined });
    }
    if (spec.sort) {
      const sign = spec.descending ? -1 : 1;
      found.sort((a, b) => inOrder(a.key, b.key, sign) || (a.id < b.id ? -1 : 1));
    }
    return { order: found.map(({ id }) => id), all };
  }

  /** The filter that alone hides most: all the objects for which no other one fails. */
  #mostExcluding(spec: ViewSpec): Excluding | undefined {
    const belongs = partOf(spec, this.#value);
    const filters = filtersOf(spec, this.#value);
    const hidden = filters.map(() => 0);
    for (const { object } of this.#of(spec.kind).values()) {
      if (!belongs(object)) continue;
      const failing = filters.flatMap((holds, at) => (holds(object) ? [] : [at]));
      const [only] = failing;
      if (failing.length === 1 && only !== undefined) hidden[only] = (hidden[only] ?? 0) + 1;
    }
    const rows = Math.max(0, ...hidden);
    return rows === 0 ? undefined : { condition: spec.conditions?.[hidden.indexOf(rows)], rows };
  }

  /** The value of an object for a key of conditions and of sort. */
  readonly #value = (kind: Kind, object: Kinds[Kind], key: string): unknown =>
    kind === "workload"
      ? workloadValue(object as WorkloadRow, key, this.#lookup)
      : valueAt(object, key);

  readonly #lookup: Lookup = {
    whyOf: (row) => this.#reasonsOf(row)?.[0]?.code,
    departmentOf: ({ departmentId }) => this.get("department", departmentId)?.name,
  };

  /** Sums over all workloads. */
  counts(): WorkloadCounts {
    const phases: Record<string, number> = {};
    const waiting = new Map<string, WorkloadCounts["waiting"][number]>();
    const happened: Happening[] = [];
    let gpusAllocated = 0;
    let [workloadsWaiting, gpusWaiting] = [0, 0];
    for (const { object } of this.#of("workload").values()) {
      const row = object as WorkloadRow;
      phases[row.phase] = (phases[row.phase] ?? 0) + 1;
      gpusAllocated += row.gpusAllocated;
      if (TOLD.has(row.phase)) addNewest(happened, { what: "phase", at: row.phaseUpdatedAt, row });
      const evictedAt = row.lastEviction?.at;
      if (evictedAt) addNewest(happened, { what: "eviction", at: evictedAt, row });
      if (!waits(row.phase)) continue;
      workloadsWaiting += 1;
      gpusWaiting += row.gpusRequested;
      const [first] = this.#reasonsOf(row) ?? [];
      if (!first) continue;
      const sum = waiting.get(first.code);
      if (sum) {
        sum.count += 1;
        sum.alike &&= sum.message === first.message;
        sum.gpus += row.gpusRequested;
      } else {
        const { code, message } = first;
        waiting.set(code, { code, message, alike: true, count: 1, gpus: row.gpusRequested });
      }
    }
    return {
      phases,
      gpusAllocated,
      workloadsWaiting,
      gpusWaiting,
      waiting: [...waiting.values()].toSorted((a, b) => b.count - a.count),
      happened: happened.map((one) => ({
        ...one,
        row: { ...one.row, reasons: this.#reasonsOf(one.row) },
      })),
    };
  }
}

type Test = (object: Kinds[Kind]) => boolean;
type Value = (kind: Kind, object: Kinds[Kind], key: string) => unknown;

/** The test of a condition on objects of a kind. */
const testsOf = (kind: Kind, value: Value) => (condition: Condition) => {
  const holds = test(condition);
  return (object: Kinds[Kind]) => holds(value(kind, object, condition.field));
};

/** Test of what the list of a view is of. */
function partOf({ kind, always = [] }: ViewSpec, value: Value): Test {
  const tests = always.map(testsOf(kind, value));
  return (object) => tests.every((holds) => holds(object));
}

/** The filters of a view: its conditions in their order, then its search. */
function filtersOf({ kind, conditions = [], search = "" }: ViewSpec, value: Value): Test[] {
  const tests = conditions.map(testsOf(kind, value));
  const words = search.toLowerCase().split(/\s+/u).filter(Boolean);
  if (words.length === 0) return tests;
  const fields = SEARCHED[kind] ?? ["name"];
  const isFound: Test = (object) => {
    const values = fields.map((field) => valueAt(object, field) ?? "");
    const text = values.join("\n").toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return [...tests, isFound];
}

/**
 * Phases that "just happened" lists: starts and ends. It reads rows, not events of the stream: a row has
 * the phase and its time from before the page was open, so a reload shows the same list. It therefore
 * lists one phase and one eviction of each workload, the last, and nothing of a deleted workload.
 */
const TOLD = new Set(["Running", "Completed", "Failed", "Stopped"]);

/** Maximum number of happenings that are told. */
const HAPPENINGS_MAX = 8;

/** Adds a happening in its order, newest first, if it is among the newest. */
function addNewest(happened: Happening[], one: Happening): void {
  let place = happened.length;
  while (place > 0 && (happened[place - 1]?.at ?? "") < one.at) place -= 1;
  if (place >= HAPPENINGS_MAX) return;
  happened.splice(place, 0, one);
  happened.splice(HAPPENINGS_MAX);
}

/** A row with the values that the stream leaves out. */
function complete(row: Partial<WorkloadRow> & Pick<WorkloadRow, "createdAt">): WorkloadRow {
  return { ...NOTHING, ...row, phaseUpdatedAt: row.phaseUpdatedAt ?? row.createdAt } as WorkloadRow;
}
