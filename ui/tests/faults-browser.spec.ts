// Faults of the browser: its clock, its storage, what it lacks, what its user needs.
import { connection, expect, goTo, logIn, type Page, rowOf, test } from "./fixture";
import type { Server } from "./server";

test("clock of the browser a day off", async ({ page, server, team }) => {
  await server.submit(team.id, "a1");
  await page.addInitScript(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 86_400_000;
  });
  await logIn(page, server);
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toContainText("Running");
  // Ages are by the clock of the server.
  await expect(rowOf(page, "a1").locator("time").last()).toHaveText(/^\d+ s$/u);
});

test("the time of a lost connection, with the clock of the browser a day off", async ({
  page,
  server,
  between,
}) => {
  await page.addInitScript(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() - 86_400_000;
  });
  await logIn(page, server, between);
  await expect(connection(page)).toHaveText("live");
  between.refuse(/\/changes/u, 503, "gone");
  between.cut();
  const said = page.getByText(/^As of/u).getByRole("time");
  const hoursOff = async () => {
    const shown = Date.parse((await said.getAttribute("datetime")) ?? "");
    return Math.round(Math.abs(shown - Date.now()) / 3_600_000);
  };
  await expect.poll(hoursOff).toBe(0);
});

test("private window", async ({ browser, server, team }) => {
  await server.submit(team.id, "a1");
  const context = await browser.newContext();
  const page = await context.newPage();
  await logIn(page, server);
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toBeVisible();
  await context.close();
  // Nothing of it is left to the next one.
  const next = await browser.newContext();
  const there = await next.newPage();
  await there.goto(`${server.url}/workloads`);
  await expect(there.getByRole("heading", { name: "Log in" })).toBeVisible();
  await next.close();
});

test("JavaScript off (says so)", async ({ browser, server }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${server.url}/workloads`);
  await expect(page.getByText("This page needs JavaScript")).toBeVisible();
  await context.close();
});

test("no SharedWorker", async ({ page, server, between, team }) => {
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  await logIn(page, server, between);
  await expect(connection(page)).toHaveText("live");
  // The stream is in a worker of this page alone.
  expect(page.workers()).toHaveLength(1);
  await liveIn(page, server, team.id);
  const other = await page.context().newPage();
  await other.goto(`${between.url}/workloads`);
  await expect(rowOf(other, "a1")).toContainText("Running");
  expect(between.streams).toBe(2);
});

for (const [kind, worker] of [
  ["", "one for all tabs"],
  [", no SharedWorker", "one for this tab"],
] as const) {
  test(`storage refused${kind}`, async ({ page, server, team }) => {
    await page.addInitScript((isAlone) => {
      if (isAlone) Reflect.deleteProperty(globalThis, "SharedWorker");
      for (const storage of ["localStorage", "sessionStorage"]) {
        Object.defineProperty(globalThis, storage, {
          get: () => {
            throw new DOMException("refused", "SecurityError");
          },
        });
      }
    }, worker === "one for this tab");
    await logIn(page, server);
    await expect(connection(page)).toHaveText("live");
    const alone = worker === "one for this tab";
    expect(page.workers()).toHaveLength(alone ? 1 : 0);
    expect(await sharedWorkers(page)).toHaveLength(alone ? 0 : 1);
    await liveIn(page, server, team.id);
    // The choice lives as long as the page.
    await page.getByRole("button", { name: /^Account of/u }).click();
    await page.getByRole("menuitem", { name: "Dark theme" }).click();
    await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
    await page.reload();
    await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  });
}

/** Addresses of the workers that tabs of the browser of a page share. */
async function sharedWorkers(page: Page): Promise<string[]> {
  const asked = await page.context().newCDPSession(page);
  const { targetInfo } = await asked.send("Target.getTargetInfo");
  const { targetInfos } = await asked.send("Target.getTargets");
  const ours = ({ type, browserContextId }: (typeof targetInfos)[number]) =>
    type === "shared_worker" && browserContextId === targetInfo.browserContextId;
  return targetInfos.filter(ours).map(({ url }) => url);
}

/** Submits a training, which appears without a reload. */
async function liveIn(page: Page, server: Server, project: string): Promise<void> {
  await goTo(page, "Workloads");
  await server.submit(project, "a1");
  await expect(rowOf(page, "a1")).toContainText("Running");
}
