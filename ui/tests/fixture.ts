// A real server for a worker, and pages that may do nothing they should not.
import {
  type BrowserContext,
  expect,
  type Locator,
  type Page,
  test as base,
} from "@playwright/test";

import { Between } from "./between";
import { Server } from "./server";
import { UNANSWERED, Watch } from "./watch";

interface Fixtures {
  /** Each page of the test is watched, also in contexts that it opens itself. */
  watch: Watch;
  /** A page that is logged in as the local administrator. */
  app: Page;
  /** A server of this test alone, which it may stop. */
  own: Server;
  /** Something between the browser and the server, for faults. */
  between: Between;
  /** Opens a between in front of any server, such as the crowd. */
  inFrontOf: (server: Server) => Promise<Between>;
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
  own: async ({ watch }, provide) => {
    const server = await Server.start();
    await provide(server);
    await watch.end();
    await server.down();
  },
  watch: [
    async ({ context, browser }, provide) => {
      const watch = new Watch();
      await watch.of(context);
      const release = watch.ofAll(browser);
      await provide(watch);
      await watch.end();
      release();
      expect(watch.faults).toEqual([]);
    },
    { auto: true },
  ],
  app: async ({ page, server }, provide) => {
    await logIn(page, server);
    await provide(page);
  },
  inFrontOf: async ({ watch }, provide) => {
    const opened: Between[] = [];
    await provide(async (server) => {
      const between = await Between.open(server);
      opened.push(between);
      return between;
    });
    // Pages are still open, and lose what they talk to.
    await watch.end();
    for (const between of opened) between.close();
  },
  between: async ({ server, inFrontOf }, provide) => provide(await inFrontOf(server)),
  team: async ({ server, watch }, provide, { workerIndex }) => {
    teams += 1;
    const name = `team-${workerIndex}-${teams}`;
    const id = await server.project(name);
    await provide({ name, id });
    await watch.end();
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

/** The state of the connection, in the header. */
export function connection(page: Page): Locator {
  return page.getByRole("banner").locator("[data-state]");
}

/** The row of a grid with this name. */
export function rowOf(page: Page, name: string) {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
}

/** Chooses a tile, and waits until it is chosen. */
export async function choose(tile: Locator): Promise<void> {
  await tile.click();
  await expect(tile).toBeChecked();
}

/** Connects again now, unless the page has just done so by itself: then the button is gone. */
export async function tryNow(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Try now" });
  await button.click({ timeout: 2000 }).catch(() => expect(button).toBeHidden());
}

export { type BrowserContext, expect, type Locator, type Page, UNANSWERED, type Watch };
