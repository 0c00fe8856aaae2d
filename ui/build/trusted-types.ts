// Lets react-aria empty its announcements without `innerHTML`, which our policy refuses, the empty
// text as well.
import type { Plugin } from "vite";

const MODULE = /react-aria\/.*\/LiveAnnouncer\.m?js$/u;
const EMPTIED = /\.innerHTML = ['"]{2}/gu;

export function trustedTypes(): Plugin {
  let found = 0;
  return {
    name: "trusted-types",
    apply: "build",
    enforce: "pre",
    transform(code, id) {
      if (!MODULE.test(id)) return null;
      return code.replace(EMPTIED, () => {
        found += 1;
        return ".replaceChildren()";
      });
    },
    buildEnd(error) {
      // A version that does without needs no plugin; one that does it elsewhere fails in browsers.
      if (!error && found === 0 && this.environment.name === "client" && !this.meta.watchMode) {
        this.warn("react-aria sets no innerHTML any more: delete build/trusted-types.ts");
      }
    },
  };
}
