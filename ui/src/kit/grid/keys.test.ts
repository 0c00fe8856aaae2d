// The keyboard table of the ARIA grid, row by row.
import { expect, test } from "vitest";

import { place } from "./columns";
import { move } from "./keys";

const EXTENT = { rows: 100, columns: 5, page: 20 };
const at = (row: number, column: number) => ({ row, column });
const key = (name: string, ctrlKey = false) => ({ key: name, ctrlKey, metaKey: false });

test.each([
  ["one cell to the right", key("ArrowRight"), at(3, 1), at(3, 2)],
  ["not beyond the last column", key("ArrowRight"), at(3, 4), at(3, 4)],
  ["one cell to the left", key("ArrowLeft"), at(3, 1), at(3, 0)],
  ["not before the first column", key("ArrowLeft"), at(3, 0), at(3, 0)],
  ["one cell down", key("ArrowDown"), at(3, 1), at(4, 1)],
  ["not below the last row", key("ArrowDown"), at(99, 1), at(99, 1)],
  ["one cell up", key("ArrowUp"), at(3, 1), at(2, 1)],
  ["from the first row to the header", key("ArrowUp"), at(0, 1), at(-1, 1)],
  ["a page down", key("PageDown"), at(3, 1), at(23, 1)],
  ["a page up, to the first row at most", key("PageUp"), at(3, 1), at(0, 1)],
  ["to the first cell of the row", key("Home"), at(3, 2), at(3, 0)],
  ["to the last cell of the row", key("End"), at(3, 2), at(3, 4)],
  ["to the first cell of all", key("Home", true), at(3, 2), at(0, 0)],
  ["to the last cell of all", key("End", true), at(3, 2), at(99, 4)],
])("%s", (_, pressed, from, to) => {
  expect(move(from, pressed, EXTENT)).toEqual(to);
});

test("arrows lead where they point, from right to left as well", () => {
  const extent = { ...EXTENT, isRtl: true };
  expect(move(at(3, 1), key("ArrowRight"), extent)).toEqual(at(3, 0));
  expect(move(at(3, 1), key("ArrowLeft"), extent)).toEqual(at(3, 2));
});

const column = (id: string, rank: number, grows = 0) => ({
  id,
  name: id,
  width: 100,
  rank,
  grows,
  cell: () => null,
});

test("columns leave by importance, and the one that grows takes what is left", () => {
  const all = [column("name", 0), column("why", 1, 1), column("age", 2)];
  const ids = (room: number) => place(all, room).map(({ id, size }) => `${id} ${size}`);
  expect(ids(350)).toEqual(["name 100", "why 150", "age 100"]);
  expect(ids(280)).toEqual(["name 100", "why 180"]);
  expect(ids(50)).toEqual(["name 100"]);
});
