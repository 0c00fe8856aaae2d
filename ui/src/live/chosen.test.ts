// Choosing and ordering columns.
import { expect, test } from "vitest";

import type { Column } from "../kit/grid/columns";
import { parseList, printList } from "./address";
import { moveColumn, pickColumns, usual } from "./chosen";

const column = (id: string, isExtra = false): Column<null> => ({
  id,
  name: id,
  width: 100,
  rank: 1,
  isExtra,
  cell: () => null,
});

const ALL = [column("name"), column("status"), column("why"), column("nodes", true)];

test("columns are those that are chosen, the first one always first", () => {
  const ids = (chosen: string[]) => pickColumns(ALL, chosen).map(({ id }) => id);
  expect(usual(ALL)).toEqual(["name", "status", "why"]);
  expect(ids(["nodes", "status"])).toEqual(["name", "nodes", "status"]);
  expect(ids(["why", "name"])).toEqual(["name", "why"]);
  expect(ids(["no such", "__proto__"])).toEqual(["name"]);
});

test("a column moves by a place, and not before the first", () => {
  const ids = ["name", "status", "why"];
  expect(moveColumn(ids, "status", 1)).toEqual(["name", "why", "status"]);
  expect(moveColumn(ids, "why", -1)).toEqual(["name", "why", "status"]);
  expect(moveColumn(ids, "status", -1)).toEqual(ids);
  expect(moveColumn(ids, "name", 1)).toEqual(ids);
  expect(moveColumn(ids, "why", 1)).toEqual(ids);
});

test("what is chosen is in the address", () => {
  const state = parseList("cols=name,nodes&q=x");
  expect(state.columns).toEqual(["name", "nodes"]);
  expect(printList(state)).toBe("?q=x&cols=name%2Cnodes");
  expect(parseList("q=x").columns).toBeUndefined();
});
