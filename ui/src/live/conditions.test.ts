// Tests of conditions and addresses of lists.
import { expect, test } from "vitest";

import { parseList, printList } from "./address";
import { parseCondition, test as testOf } from "./conditions";

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
  expect(condition && testOf(condition)(ROW)).toBe(expected);
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
