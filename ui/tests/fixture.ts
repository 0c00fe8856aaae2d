// A real server for a worker, and pages that may do nothing they should not.
import { type BrowserContext, expect, type Page, test as base } from "@playwright/test";

import { Between } from "./between";
import { Server } from "./server";

/** A page may by default shift its layout by so much without an action of the user; Google's "good" is 0.1. */
const SHIFT_MAX = 0.02;

/** What no page may do; each entry fails its test. */
class Watch {
  readonly faults: string[] = [];
  shiftMax = SHIFT_MAX;
  /** Texts of console errors that a test provokes. */
  readonly expected: RegExp[] = [/Failed to load resource|net::ERR_/u];

  async of(context: BrowserContext): Promise<void> {
    await context.exposeFunction("reportShift", (shift: number, what: string) => {
      if (shift > this.shiftMax) this.faults.push(`layout shift ${shift.toFixed(3)}: ${what}`);
    });
    await context.addInitScript(observeShifts);
    context.on("console", (message) => {
      const text = message.text();
      const isExpected = this.expected.some((one) => one.test(text));
      if (message.type() === "error" && !isExpected) this.faults.push(`console: ${text}`);
    });
    context.on("weberror", (error) => this.faults.push(`error: ${error.error().message}`));
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isOurs = hostname === "127.0.0.1" || hostname === "localhost";
      if (protocol !== "data:" && !isOurs) this.faults.push(`another host: ${request.url()}`);
    });
  }
}

/** Reports the worst second-long run of shifts (Cumulative Layout Shift) of a page as it grows. */
function observeShifts(): void {
  const { reportShift } = globalThis as unknown as {
    reportShift: (shift: number, what: string) => void;
  };
  let sum = 0;
  let began = 0;
  let last = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as LayoutShift[]) {
      if (entry.hadRecentInput) continue;
      if (entry.startTime - last > 1000 || entry.startTime - began > 5000) {
        sum = 0;
        began = entry.startTime;
      }
      last = entry.startTime;
      sum += entry.value;
      const moved = entry.sources.map(({ node }) => {
        const element = node instanceof Element ? node : node?.parentElement;
        return element?.outerHTML.slice(0, 120) ?? "";
      });
      reportShift(sum, moved.join(" | "));
    }
  }).observe({ type: "layout-shift", buffered: true });
}

interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null }[];
}

interface Fixtures {
  /** Each page of the test is watched. */
  watch: Watch;
  /** A page that is logged in as the local administrator. */
  app: Page;
  /** A server of this test alone, which it may stop. */
  own: Server;
  /** Something between the browser and the server, for faults. */
  between: Between;
  /** A project of this test alone: its name, and its id. */
  team: { name: string; id: string };
}

let teams = 0;

export const test = base.extend<Fixtures, { server: Server }>({
  // One for all tests of a worker: they have projects of their own.
  server: [
    // oxlint-disable-next-line no-empty-pattern
    async ({}, provide) => {
      const server = await Server.start();
      await provide(server);
      await server.down();
    },
    { scope: "worker" },
  ],
  // oxlint-disable-next-line no-empty-pattern
  own: async ({}, provide) => {
    const server = await Server.start();
    await provide(server);
    await server.down();
  },
  watch: [
    async ({ context }, provide) => {
      const watch = new Watch();
      await watch.of(context);
      await provide(watch);
      // What pages reported last has arrived once they answer.
      await Promise.all(context.pages().map((page) => page.evaluate(() => 0).catch(() => 0)));
      expect(watch.faults).toEqual([]);
    },
    { auto: true },
  ],
  app: async ({ page, server }, provide) => {
    await logIn(page, server);
    await provide(page);
  },
  between: async ({ server }, provide) => {
    const between = await Between.open(server);
    await provide(between);
    between.close();
  },
  team: async ({ server }, provide, { workerIndex }) => {
    teams += 1;
    const name = `team-${workerIndex}-${teams}`;
    const id = await server.project(name);
    await provide({ name, id });
    await server.clear(id);
  },
});

/** Opens Overview as the local administrator, by a link, at the address of the server or of `front`. */
export async function logIn(page: Page, server: Server, front?: Between): Promise<void> {
  await page.goto(await server.link(front?.url));
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
}

/** Goes to a page by the navigation. */
export async function goTo(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
  await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
}

/** The row of a grid with this name. */
export function rowOf(page: Page, name: string) {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
}

export { expect, type Page };
