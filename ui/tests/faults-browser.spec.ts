// Faults of the browser: its clock, its storage, what it lacks, what its user needs.
import { expect, goTo, logIn, rowOf, test } from "./fixture";

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
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  between.refuse(/\/changes/u, 503, "gone");
  between.cut();
  const said = page.getByText(/^As of/u).getByRole("time");
  const hoursOff = async () => {
    const shown = Date.parse((await said.getAttribute("datetime")) ?? "");
    return Math.round(Math.abs(shown - Date.now()) / 3_600_000);
  };
  await expect.poll(hoursOff).toBe(0);
});

test("a private window", async ({ browser, server, team }) => {
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

test("JavaScript off", async ({ browser, server }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${server.url}/workloads`);
  await expect(page.getByText("This page needs JavaScript")).toBeVisible();
  await context.close();
});

test("no SharedWorker, and storage refused", async ({ page, server, team }) => {
  await page.addInitScript(() => {
    Reflect.deleteProperty(globalThis, "SharedWorker");
    for (const storage of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(globalThis, storage, {
        get: () => {
          throw new DOMException("refused", "SecurityError");
        },
      });
    }
  });
  await logIn(page, server);
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  // The stream is in a worker of this page alone.
  expect(page.workers()).toHaveLength(1);
  await server.submit(team.id, "a1");
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toContainText("Running");
});
