// Looks of projects: 24 that stay apart, each the same on every page and after others came.
import { expect, test } from "vitest";

import { LOOKS, looksOf, projectColor, projectFill } from "./project-color";

const ids = (count: number, name: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => name(n));
const NAMES: [what: string, name: (n: number) => string][] = [
  ["numbers", (n) => String(4_500_000 + n)],
  ["names", (n) => `team-${n}`],
  ["ids", (n) => `01980${n.toString(16).padStart(3, "0")}-7c11-7c11-8c11-${"0".repeat(12)}`],
];

test.each(NAMES)("no two of the first 24 projects are alike: %s", (_what, name) => {
  const all = ids(LOOKS, name);
  const looks = looksOf(all);
  expect(new Set(all.map((id) => projectFill(looks, id))).size).toBe(LOOKS);
  // Fills are for when the hues are gone.
  expect(new Set(all.slice(0, 8).map((id) => projectColor(looks, id))).size).toBe(8);
  expect(all.slice(0, 8).filter((id) => projectFill(looks, id).includes("gradient"))).toEqual([]);
});

test("a new project changes the look of none before it", () => {
  const all = ids(LOOKS, (n) => `team-${n}`);
  for (let count = 1; count < LOOKS; count += 1) {
    const [before, after] = [looksOf(all.slice(0, count)), looksOf(all.slice(0, count + 1))];
    for (const id of all.slice(0, count)) expect(after.get(id)).toBe(before.get(id));
  }
});

test.each(NAMES)("projects beyond them are spread over all looks: %s", (_what, name) => {
  const sums = new Map<string, number>();
  for (const id of ids(2400, name)) {
    const fill = projectFill(new Map(), id);
    sums.set(fill, (sums.get(fill) ?? 0) + 1);
  }
  expect(sums.size).toBe(LOOKS);
  // 100 of each on average.
  expect(Math.max(...sums.values())).toBeLessThan(160);
});
