// Columns that stay when there is little room.
import { expect, test } from "vitest";

import { type Column, place } from "./columns";

const column = (id: string, rank: number, more?: Partial<Column<null>>): Column<null> => ({
  id,
  name: id,
  width: 100,
  rank,
  cell: () => null,
  ...more,
});

const COLUMNS = [
  column("name", 0),
  column("status", 1),
  column("why", 2, { width: 200, grows: 1, least: 80 }),
  column("gpus", 3),
];

test("columns leave by importance, and one is cut before it leaves, and grows to a limit", () => {
  for (const [room, sizes] of [
    [4000, { name: 100, status: 100, why: 2100, gpus: 100 }],
    [2400, { name: 100, status: 100, why: 2100, gpus: 100 }],
    [600, { name: 100, status: 100, why: 300, gpus: 100 }],
    [500, { name: 100, status: 100, why: 200, gpus: 100 }],
    [499, { name: 100, status: 100, why: 299 }],
    [290, { name: 100, status: 100, why: 90 }],
    [279, { name: 100, status: 100 }],
    [120, { name: 100 }],
  ] as const) {
    const placed = place(COLUMNS, room);
    expect(Object.fromEntries(placed.map(({ id, size }) => [id, size]))).toEqual(sizes);
  }
});
