// Writes the licences of what is in the bundle to `_ui/licences.txt`, and stops at one that is not
// in the list of `deny.toml`.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const DENY = "../deny.toml";

/** The names between the brackets of `allow = [ … ]`. */
function allowed(): Set<string> {
  const list = /^allow = \[([^\]]*)\]/mu.exec(readFileSync(DENY, "utf8"))?.[1];
  if (!list) throw new Error(`${DENY} has no list of licences`);
  return new Set([...list.matchAll(/"([^"]+)"/gu)].map((found) => found[1] ?? ""));
}

/** The folder of the package that a module is of. */
function packageOf(module: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/u.exec(module.replace(/^\0/u, ""))?.[0];
}

function textOf(folder: string): string {
  const names = readdirSync(folder).filter((name) => /^(licen[cs]e|notice)/iu.test(name));
  return names
    .toSorted()
    .map((name) => readFileSync(join(folder, name), "utf8").trim())
    .join("\n\n");
}

export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_options, bundle) {
      const folders = new Set<string>();
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        for (const module of Object.keys(chunk.modules)) {
          const folder = packageOf(module);
          if (folder && existsSync(join(folder, "package.json"))) folders.add(folder);
        }
      }
      const list = allowed();
      const parts = [...folders].map((folder) => {
        const described = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
          name: string;
          version: string;
          license?: string;
        };
        const { name, version, license } = described;
        if (!license || !list.has(license)) {
          throw new Error(`${name} has the licence ${license}, which ${DENY} does not allow`);
        }
        return `${name} ${version} (${license})\n\n${textOf(folder)}\n`;
      });
      const rule = `\n${"-".repeat(80)}\n\n`;
      const source = parts.toSorted().join(rule);
      this.emitFile({ type: "asset", fileName: "_ui/licences.txt", source });
    },
  };
}
