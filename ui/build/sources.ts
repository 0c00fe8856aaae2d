// Writes `SOURCES`: the digest of all files that can change the bundle. `cargo xtask tidy` computes
// the same (`xtask/src/tidy/ui.rs`), without Node.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const FILES = [
  "index.html",
  "package-lock.json",
  "package.json",
  "tsconfig.json",
  "vite.config.ts",
];
const FOLDERS = ["build", "src"];

function counts(path: string): boolean {
  return !/\.d\.ts$|\.test\.tsx?$/u.test(path);
}

function below(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? below(path) : [path];
  });
}

/** The digest of the files that can change the bundle. */
export function digest(): string {
  const hash = createHash("sha256");
  // Without an order of a language: by bytes.
  // oxlint-disable-next-line unicorn/require-array-sort-compare
  const paths = [...FILES, ...FOLDERS.flatMap(below)].filter(counts).toSorted();
  for (const path of paths) {
    const content = readFileSync(path);
    hash.update(`${path}\n${content.length}\n`).update(content);
  }
  return hash.digest("hex");
}

export function sources(): Plugin {
  return {
    name: "sources",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "SOURCES", source: `${digest()}\n` });
    },
  };
}
