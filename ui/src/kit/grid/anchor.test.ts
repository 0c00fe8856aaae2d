// Tests of the anchor of a grid: how far the rows moved that were on the screen.
import { expect, test } from "vitest";

import { movedBy } from "./anchor";

const rows = (ids: string) => [...ids].map((id) => ({ id }));
const seen = new Map([...rows("cdef").entries()].map(([index, { id }]) => [id, index + 2]));

test.each([
  ["nothing moved", "abcdef", 0, 0],
  ["rows came above", "xyabcdef", 0, 2],
  ["a row above went", "bcdef", 0, -1],
  ["the first of them went far up by itself", "cabdef", 0, 0],
  ["the first of them went far down by itself", "abdefghic", 0, -1],
  ["the window begins later", "def", 4, 1],
  ["none of them is left", "xyz", 0, undefined],
])("%s", (_, ids, from, moved) => {
  expect(movedBy(seen, rows(ids), from)).toBe(moved);
});
