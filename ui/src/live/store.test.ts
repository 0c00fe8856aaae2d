// Tests of views: filtered, sorted, cut, frozen; reasons in rows; counts.
import { expect, test } from "vitest";

import { type Condition, parseCondition } from "./conditions";
import type { LiveEvent } from "../api/types";
import { LOOKS } from "../kit/Status";
import { type Kinds, PHASES, type WorkloadRow } from "./rows";
import { inOrder } from "./fields";
import { Store } from "./store";

function workload(id: string, more: Partial<WorkloadRow> = {}): WorkloadRow {
  return {
    id,
    name: id,
    phase: "Running",
    gpusRequested: 1,
    gpusAllocated: 1,
    ...more,
  } as WorkloadRow;
}

function names(store: Store, spec: object, before = { order: [] as string[] }): string[] {
  const { rows } = store.view({ kind: "workload", ...spec }, before);
  return rows.map(({ object, gone }) => `${(object as WorkloadRow).id}${gone ? " gone" : ""}`);
}

test("a view is filtered, searched, sorted and cut", () => {
  const store = new Store();
  for (const id of ["c", "a", "b"]) store.set("workload", id, workload(id));
  store.set("workload", "d", workload("d", { phase: "Pending" }));
  expect(names(store, { sort: "name" })).toEqual(["a", "b", "c", "d"]);
  expect(names(store, { sort: "name", descending: true, from: 1, to: 3 })).toEqual(["c", "b"]);
  const running = [{ field: "phase", operator: "==" as const, value: "Running" }];
  expect(names(store, { sort: "name", conditions: running })).toEqual(["a", "b", "c"]);
  expect(names(store, { search: "PEND" })).toEqual(["d"]);
});

function is(field: string, value: string): Condition {
  return { field, operator: "==", value };
}

test("of some conditions one has to hold, beside those that all have to", () => {
  const store = new Store();
  for (const id of ["a", "b", "c"]) store.set("workload", id, workload(id, { departmentId: "1" }));
  store.set("workload", "d", workload("d", { departmentId: "2", phase: "Pending" }));
  const anyOf = [is("id", "a|b"), is("departmentId", "2")];
  expect(names(store, { sort: "name", anyOf })).toEqual(["a", "b", "d"]);
  const conditions = [is("phase", "Running")];
  expect(names(store, { sort: "name", anyOf, conditions })).toEqual(["a", "b"]);
  expect(names(store, { anyOf: [] })).toEqual([]);
});

test("all are what the list is of, whatever is filtered", () => {
  const store = new Store();
  for (const id of ["a", "b"]) store.set("workload", id, workload(id, { departmentId: "1" }));
  store.set("workload", "c", workload("c", { departmentId: "2" }));
  const always = [is("departmentId", "1")];
  const spec = { kind: "workload" as const, always, conditions: [is("id", "b|c")] };
  const { all, total } = store.view(spec, { order: [] });
  expect({ all, total }).toEqual({ all: 2, total: 1 });
});

test("where no row matches, the filter that alone hides most is named", () => {
  const store = new Store();
  const add = (id: string, more: Partial<WorkloadRow>) =>
    store.set("workload", id, workload(id, more));
  for (const id of ["a", "b", "c"]) add(id, { projectName: "vision", departmentId: "1" });
  add("d", { phase: "Pending", projectName: "speech", departmentId: "1" });
  add("e", { projectName: "vision", departmentId: "2" });
  const [pending, vision] = [is("phase", "Pending"), is("projectName", "vision")];
  const excludes = (spec: object) =>
    store.view({ kind: "workload", always: [is("departmentId", "1")], ...spec }, { order: [] })
      .excludes;
  expect(excludes({ conditions: [pending, vision] })).toEqual({ condition: pending, rows: 3 });
  expect(excludes({ conditions: [pending], search: "vision" })).toEqual({
    condition: pending,
    rows: 3,
  });
  // Without a condition it is the search.
  expect(excludes({ conditions: [vision], search: "nothing" })).toEqual({ rows: 3 });
  // None alone is enough, a row matches, there is no filter, or nothing to filter.
  expect(excludes({ conditions: [is("phase", "Failed"), pending] })).toEqual({
    condition: is("phase", "Failed"),
    rows: 1,
  });
  expect(excludes({ conditions: [is("phase", "Failed"), is("id", "z")] })).toBeUndefined();
  expect(excludes({ conditions: [pending] })).toBeUndefined();
  expect(excludes({})).toBeUndefined();
  expect(excludes({ always: [is("id", "z")], conditions: [pending] })).toBeUndefined();
});

test("of events the last ones are kept", () => {
  const store = new Store();
  for (let seq = 1; seq <= 1000; seq += 1) store.set("event", String(seq), { seq } as LiveEvent);
  const newest = { kind: "event" as const, sort: "seq", descending: true };
  const { rows, all } = store.view(newest, { order: [] });
  const seqs = rows.map(({ object }) => (object as LiveEvent).seq);
  expect(all).toBe(400);
  expect(seqs[0]).toBe(1000);
  expect(seqs.at(-1)).toBe(601);
});

test("a frozen view keeps its order, counts what is new, and shows what is gone", () => {
  const store = new Store();
  const before = { order: [] as string[] };
  for (const id of ["b", "c"]) store.set("workload", id, workload(id));
  expect(names(store, { sort: "name" }, before)).toEqual(["b", "c"]);
  store.set("workload", "a", workload("a"));
  store.delete("workload", "c");
  const spec = { kind: "workload" as const, sort: "name", frozen: true };
  expect(names(store, spec, before)).toEqual(["b", "c gone"]);
  expect(store.view(spec, before).fresh).toBe(1);
  // A row that the user chose is shown all the same.
  const made = { order: [...before.order] };
  expect(names(store, { ...spec, chosen: "a" }, made)).toEqual(["a", "b"]);
  expect(names(store, { sort: "name" }, before)).toEqual(["a", "b"]);
});

test("a shared reason is in every row that names it, and rows are new when it changes", () => {
  const store = new Store();
  const at = "2026-11-28T09:00:00Z";
  store.set("workload", "a", workload("a", { phase: "Pending", why: { reason: "17", at } }));
  const reasons = (text: string) => ({ id: "17", reasons: [{ code: "P102", message: text, at }] });
  store.set("reason", "17", reasons("one"));
  const view = () => store.view({ kind: "workload" }, { order: [] }).rows[0];
  const first = view();
  expect((first?.object as WorkloadRow | undefined)?.reasons?.[0]?.message).toBe("one");
  store.set("reason", "17", reasons("two"));
  expect((view()?.object as WorkloadRow | undefined)?.reasons?.[0]?.message).toBe("two");
  expect(view()?.version).toBeGreaterThan(first?.version ?? 0);
  const one = { code: "P102", message: "two", alike: true, count: 1, gpus: 1 };
  expect(store.counts().waiting).toEqual([one]);
  // Another one with the same sentence, then one with another.
  store.set("workload", "v", workload("v", { phase: "Pending", why: { reason: "17", at } }));
  expect(store.counts().waiting).toEqual([{ ...one, count: 2, gpus: 2 }]);
  const own = { code: "P102", message: "three", at } as never;
  store.set("workload", "u", workload("u", { phase: "Pending", why: own }));
  expect(store.counts().waiting).toMatchObject([{ alike: false, count: 3 }]);
});

test("conditions take the keys of the API, and those of columns", () => {
  const store = new Store();
  const more = { gpusRequested: 2, type: "Distributed", departmentId: "7", image: "i" };
  store.set("department", "7", { id: "7", name: "vision" } as never);
  store.set("workload", "a", workload("a", more as never));
  store.set("workload", "b", workload("b"));
  const found = (text: string) => {
    const condition = parseCondition(text);
    return names(store, { conditions: condition ? [condition] : [] });
  };
  const keys = ["requestedGPU>=2", "gpusRequested>=2", "images==i", "departmentName==vision"];
  for (const key of [...keys, "architecture==Distributed", "category==Train"]) {
    expect([key, found(key)]).toEqual([key, ["a"]]);
  }
  expect(found("activity==idle")).toEqual([]);
});

test("workloads that wait after a suspension count as those that have not run", () => {
  const store = new Store();
  for (const phase of PHASES) store.set("workload", phase, workload(phase, { phase }));
  expect(store.counts()).toMatchObject({ workloadsWaiting: 2, gpusWaiting: 2 });
  expect(PHASES.filter((phase) => !(phase in LOOKS))).toEqual([]);
});

function time(minute: number): string {
  return `2026-11-28T09:${String(minute).padStart(2, "0")}:00.000Z`;
}

test("the newest starts, ends and evictions are told, newest first", () => {
  const store = new Store();
  const add = (id: string, phase: string, minute: number, more: Partial<WorkloadRow> = {}) =>
    store.set("workload", id, workload(id, { phase, phaseUpdatedAt: time(minute), ...more }));
  const told = () =>
    store.counts().happened.map(({ what, at, row }) => [at, what, row.id].join(" "));
  const lastEviction = { code: "E101", message: "stopped", at: time(3) };
  add("runs again", "Running", 5, { lastEviction });
  add("evicted", "Pending", 3, { lastEviction });
  const why = { code: "F101", message: "ended with 1", at: time(4) };
  add("failed", "Failed", 4, { why });
  add("starts", "Initializing", 6);
  add("ended", "Completed", 2);
  expect(told()).toEqual([
    `${time(5)} phase runs again`,
    `${time(4)} phase failed`,
    `${time(3)} eviction runs again`,
    `${time(3)} eviction evicted`,
    `${time(2)} phase ended`,
  ]);
  expect(store.counts().happened[1]?.row.reasons).toEqual([why]);
  for (let minute = 10; minute < 30; minute += 1) add(`w${minute}`, "Stopped", minute);
  expect(told().length).toBe(8);
  expect(told()[0]).toBe(`${time(29)} phase w29`);
  expect(told()[7]).toBe(`${time(22)} phase w22`);
});

function sorted(all: unknown[], sign: 1 | -1): unknown[] {
  return all.toSorted((a, b) => inOrder(a, b, sign));
}

test("numbers are ordered by size, and what is missing comes last in both directions", () => {
  expect(sorted([10, undefined, 9, 1], 1)).toEqual([1, 9, 10, undefined]);
  expect(sorted([10, undefined, 9, 1], -1)).toEqual([10, 9, 1, undefined]);
  expect(sorted(["", "b", "a"], -1)).toEqual(["b", "a", ""]);
  expect(sorted([["n2"], [], ["n1", "n2"]], 1)).toEqual([["n1", "n2"], ["n2"], []]);
  expect(inOrder(["n1"], ["n1"])).toBe(0);
});

test("columns that show another field than they have are sorted by what they show", () => {
  const store = new Store();
  const types = { a: "Workspace", b: "Training", c: "Inference", d: "Distributed" };
  for (const [id, type] of Object.entries(types)) {
    store.set("workload", id, workload(id, { type, departmentId: id === "a" ? "1" : "2" }));
  }
  for (const [id, name] of [
    ["1", "zoology"],
    ["2", "arts"],
  ] as const) {
    store.set("department", id, { id, name } as Kinds["department"]);
  }
  expect(names(store, { sort: "category" })).toEqual(["a", "c", "b", "d"]);
  expect(names(store, { sort: "architecture" })).toEqual(["d", "a", "b", "c"]);
  expect(names(store, { sort: "departmentName" })).toEqual(["b", "c", "d", "a"]);
  const [by, others] = [store.stateOf("workload", "departmentName"), store.stateOf("workload")];
  store.set("department", "1", { id: "1", name: "algebra" } as Kinds["department"]);
  expect(store.stateOf("workload", "departmentName")).not.toBe(by);
  expect(store.stateOf("workload")).toBe(others);
});
