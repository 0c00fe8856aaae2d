// Tests of conditions and addresses of lists.
import { expect, test } from "vitest";

import { parseList, printList } from "./address";
import { parseCondition, sayCondition, test as testOf, valueAt } from "./conditions";

const ROW = { phase: "Running", gpus: 2, parent: { name: "vision" }, nodes: ["a", "b"] };

test.each([
  ["phase==Running|Pending", true],
  ["phase==Pending", false],
  ["phase!=Pending|Failed", true],
  ["gpus>=2", true],
  ["gpus>=10", false],
  ["parent.name=^vis", true],
  ["parent.name=$ion", true],
  ["parent.name=@si", true],
  ["parent.name!@si", false],
  ["nodes==b", true],
  ["nodes!=b", false],
  ["missing==", true],
])("%s", (text, expected) => {
  const condition = parseCondition(text);
  expect(condition && testOf(condition)(valueAt(ROW, condition.field))).toBe(expected);
});

test.each([
  ["phase==Pending|Running", "Status is Pending or Running"],
  ["phase!=Failed", "Status is not Failed"],
  ["phase=@a|b", "Status contains a|b"],
  [`phase=^${"a".repeat(50)}`, `Status begins with ${"a".repeat(40)}…`],
])("%s in words", (text, expected) => {
  const condition = parseCondition(text);
  expect(condition && sayCondition(condition, "Status")).toBe(expected);
});

test("what is no condition is none", () => {
  for (const text of ["", "phase", "==x", "phase=x", "a b==c"]) {
    expect(parseCondition(text)).toBeUndefined();
  }
});

test("an address comes back as it was, whatever is typed", () => {
  for (const search of ["", "<script>", "50% & more #1", "א\u202Eב", "\u0000", "+"]) {
    const state = {
      search,
      conditions: [{ field: "name", operator: "=@" as const, value: search || "x" }],
      sort: "createdAt",
      descending: true,
      columns: undefined,
    };
    expect(parseList(printList(state))).toEqual(state);
  }
  expect(printList({ search: "", conditions: [], sort: undefined, descending: false })).toBe("");
});
