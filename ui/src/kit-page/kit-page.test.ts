// The page of the kit has every widget, and is in no built file.
import { globSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

const SRC = new URL("..", import.meta.url).pathname;
const DIST = new URL("../../../crates/ui-dist/dist/", import.meta.url).pathname;
const source = readFileSync(`${SRC}kit-page/KitPage.tsx`, "utf8");

test("each file of widgets is imported by the page of the kit", () => {
  const widgets = [...globSync("*.tsx", { cwd: `${SRC}kit` }), "grid/Grid.tsx"];
  const missing = widgets.filter((file) => !source.includes(`"../kit/${file.slice(0, -4)}"`));
  expect(widgets.length).toBeGreaterThan(10);
  expect(missing).toEqual([]);
});

test("no built file has the page of the kit", () => {
  const title = "Kit of widgets";
  const built = globSync(`${DIST}_ui/*.js`).map((file) => readFileSync(file, "utf8"));
  expect(source).toContain(title);
  expect(built.some((text) => text.includes("Who has what"))).toBe(true);
  expect(built.filter((text) => text.includes(title))).toEqual([]);
});
