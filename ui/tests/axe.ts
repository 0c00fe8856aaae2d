// axe-core, injected by the debugger: a script tag would be refused by the policy.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Page } from "@playwright/test";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export class AxeBuilder {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Each violation with the elements that it is of. */
  async violations(): Promise<string[]> {
    await this.#page.evaluate(source);
    return this.#page.evaluate(async () => {
      const { axe } = globalThis as unknown as {
        axe: { run: (context: object) => Promise<AxeResult> };
      };
      const { violations } = await axe.run({
        // Of WCAG 2.2, and off unless asked for.
        rules: { "target-size": { enabled: true } },
        // Where react-aria announces: its parts are named when it speaks.
        exclude: [["[data-live-announcer]"]],
      });
      return violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
      );
    });
  }
}

interface AxeResult {
  violations: { id: string; nodes: { html: string }[] }[];
}
