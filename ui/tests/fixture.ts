// A real server for a worker, and pages that may do nothing they should not.
import {
  type Browser,
  type BrowserContext,
  expect,
  type Locator,
  type Page,
  test as base,
} from "@playwright/test";

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
  readonly #contexts: BrowserContext[] = [];

  /** Watches all contexts that the browser opens from now on; what is returned ends that. */
  ofAll(browser: Browser): () => void {
    const open = browser.newContext.bind(browser);
    browser.newContext = async (options) => {
      const context = await open(options);
      await this.of(context);
      return context;
    };
    return () => {
      browser.newContext = open;
    };
  }

  async of(context: BrowserContext): Promise<void> {
    this.#contexts.push(context);
    await context.exposeFunction("reportShift", (shift: number, what: string) => {
      if (shift > this.shiftMax) this.faults.push(`layout shift ${shift.toFixed(3)}: ${what}`);
    });
    await context.exposeFunction("reportRefusal", (what: string) => this.#fault("policy", what));
    await context.addInitScript(observeShifts);
    await context.addInitScript(observeRefusals);
    context.on("console", (message) => {
      if (message.type() === "error") this.#fault("console", message.text());
    });
    context.on("weberror", (error) => this.faults.push(`error: ${error.error().message}`));
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      const isOurs = hostname === "127.0.0.1" || hostname === "localhost";
      if (protocol !== "data:" && !isOurs) this.faults.push(`another host: ${request.url()}`);
    });
  }

  #fault(kind: string, text: string): void {
    if (!this.expected.some((one) => one.test(text))) this.faults.push(`${kind}: ${text}`);
  }

  /** Waits for what pages reported last: it has arrived once they answer. */
  async settle(): Promise<void> {
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page) => page.evaluate(() => 0).catch(() => 0)));
  }
}

/** Reports what the content policy refuses. */
function observeRefusals(): void {
  const { reportRefusal } = globalThis as unknown as { reportRefusal: (what: string) => void };
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
    reportRefusal(`${violatedDirective} ${blockedURI}`),
  );
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
  /** Each page of the test is watched, also in contexts that it opens itself. */
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

/** Workloads of the crowd. */
export const MANY = 200;

interface Servers {
  /** One for all tests of a worker: they have projects of their own. */
  server: Server;
  /** A server with many workloads, w000 to w199, which tests read and do not change. */
  crowd: Server;
}

let teams = 0;

export const test = base.extend<Fixtures, Servers>({
  crowd: [
    // oxlint-disable-next-line no-empty-pattern
    async ({}, provide) => {
      const crowd = await Server.start();
      const team = await crowd.project("team-a");
      await crowd.project("team-b");
      const image = "runai.jfrog.io/demo/quickstart";
      await crowd.asset("environment", "quickstart", { image });
      await crowd.template("sleeper", {
        image,
        command: "sleep",
        labels: [{ name: "team", value: "a" }],
      });
      const names = Array.from({ length: MANY }, (_, n) => `w${String(n).padStart(3, "0")}`);
      await Promise.all(names.map((name) => crowd.submit(team, name)));
      await provide(crowd);
      await crowd.down();
    },
    { scope: "worker" },
  ],
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
    async ({ context, browser }, provide) => {
      const watch = new Watch();
      await watch.of(context);
      const end = watch.ofAll(browser);
      await provide(watch);
      await watch.settle();
      end();
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

/** Logs in with a password, at the address of a page. */
export async function logInAs(
  page: Page,
  url: string,
  user: string,
  password: string,
): Promise<void> {
  await page.goto(url);
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "LOG IN" }).click();
  await expect(page.getByRole("button", { name: `Account of ${user}` })).toBeVisible();
}

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

/** Chooses a tile, whose radio button is not drawn, and waits until it is chosen. */
export async function choose(tile: Locator): Promise<void> {
  await tile.click({ force: true });
  await expect(tile).toBeChecked();
}

/** Connects again now, unless the page has just done so by itself: then the button is gone. */
export async function tryNow(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Try now" });
  await button.click({ timeout: 2000 }).catch(() => expect(button).toBeHidden());
}

export { expect, type Page };
