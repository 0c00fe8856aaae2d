// The published steps name buttons and pages by their labels: each of them is in the interface.
import { globSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

const DOCS = new URL("../../docs/walkthroughs/", import.meta.url).pathname;
const SRC = new URL(".", import.meta.url).pathname;

/** Texts in bold, without blocks of commands and their output. */
function labels(page: string): string[] {
  const prose = page.replaceAll(/^```[\s\S]*?^```/gmu, "");
  return [...prose.matchAll(/\*\*([^*]+)\*\*/gu)].map(([, label = ""]) =>
    label.replaceAll(/\s+/gu, " "),
  );
}

/** Texts of a source that may be shown: strings, and what stands between elements. */
function texts(source: string): string[] {
  const strings = [...source.matchAll(/"([^"\n]+)"/gu)].map(([, text = ""]) => text);
  const between = [...source.matchAll(/>([^<>{}]+)</gu)].map(([, text = ""]) => text.trim());
  return [...strings, ...between].filter(Boolean);
}

const wanted = globSync(`${DOCS}*.md`).flatMap((file) =>
  labels(readFileSync(file, "utf8")).map((label) => [label, file.slice(DOCS.length)] as const),
);
// The page of the kit is not built.
const sources = globSync(`${SRC}**/*.{ts,tsx}`).filter(
  (file) => !/\.(test|d)\.tsx?$|\/kit-page\//u.test(file),
);
const shown = new Set(sources.flatMap((file) => texts(readFileSync(file, "utf8"))));

test("each label in bold of the walk-throughs is a text of the interface", () => {
  expect(wanted.length).toBeGreaterThan(20);
  expect(wanted.filter(([label]) => !shown.has(label))).toEqual([]);
});

test("a label that is not there is found", () => {
  expect(labels("Click **+OLD\nPROJECT**.\n```\n** no label **\n```\n")).toEqual(["+OLD PROJECT"]);
  expect(texts('<b title="A">\n  CREATE {x}</b> <i>B C</i>')).toEqual(["A", "B C"]);
  expect(shown.has("+OLD PROJECT")).toBe(false);
});
