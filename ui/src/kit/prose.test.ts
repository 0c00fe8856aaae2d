// The part of Markdown that pages of codes use.
import { readdirSync, readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { blocksOf, piecesOf } from "./Prose";

const CODES = "../docs/reference/codes";

test("wrapped paragraphs, lists after a paragraph, code and links", () => {
  const text =
    "It waits\nfor `a b`.\n\n## Who\n\nOne of:\n- see\n  [P203](P203.md);\n- none.\n\n1. This.";
  expect(blocksOf(text)).toEqual([
    { tag: "p", lines: ["It waits for `a b`."] },
    { tag: "h2", lines: ["Who"] },
    { tag: "p", lines: ["One of:"] },
    { tag: "ul", lines: ["see [P203](P203.md);", "none."] },
    { tag: "ol", lines: ["This."] },
  ]);
  expect(piecesOf("see [P203](P203.md) or `x`.")).toEqual([
    { kind: "text", text: "see " },
    { kind: "link", text: "P203", to: "P203.md" },
    { kind: "text", text: " or " },
    { kind: "code", text: "x" },
    { kind: "text", text: "." },
  ]);
});

test("no page of a code has a form that is not read", () => {
  for (const file of readdirSync(CODES).filter((name) => name !== "README.md")) {
    const [, ...lines] = readFileSync(`${CODES}/${file}`, "utf8").split("\n");
    for (const { lines: texts } of blocksOf(lines.join("\n"))) {
      for (const { kind, text } of texts.flatMap(piecesOf)) {
        if (kind === "text") expect(text, file).not.toMatch(/[`|#]|\*\*|^\d+\. |\]\(/u);
      }
    }
  }
});
