// Faults of the connection: the server goes, is slow, comes back, sends its list again.
import { setTimeout as sleep } from "node:timers/promises";

import type { ResetReason } from "../src/api/types";
import type { Frame } from "./between";
import { connection, expect, goTo, logIn, type Page, rowOf, test, tryNow } from "./fixture";

test("server gone", async ({ page, own }) => {
  await own.project("team-a");
  await logIn(page, own);
  await goTo(page, "Projects");
  await goTo(page, "Overview");
  await expect(connection(page)).toHaveText("live");
  await own.stop();
  await expect(connection(page)).toHaveText("reconnecting");
  await expect(page.getByText(/^As of/u)).toBeVisible();
  // Known data stays on this page, and on others.
  await expect(page.getByText("Ready nodes")).toBeVisible();
  await goTo(page, "Projects");
  await expect(rowOf(page, "team-a")).toBeVisible();
});

test("restarted", async ({ page, own }) => {
  await logIn(page, own);
  await expect(connection(page)).toHaveText("live");
  await own.stop();
  await expect(connection(page)).toHaveText("reconnecting");
  await own.start();
  // The session of the local administrator ended with the former start.
  const again = page.getByRole("dialog", { name: "Log in again" });
  await expect(again).toBeVisible();
  // A link that is opened in another tab logs this one in as well.
  const other = await page.context().newPage();
  await logIn(other, own);
  await expect(again).toBeHidden();
  await expect(connection(page)).toHaveText("live");
});

test("a user's session goes on after the server was restarted", async ({ page, own }) => {
  await own.project("team-a");
  const password = await own.user("ann@example.com");
  await own.give("ann@example.com", "Viewer");
  await page.goto(`${own.url}/workloads`);
  await page.getByLabel("User").fill("ann@example.com");
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await expect(page.getByText("No workloads yet")).toBeVisible();
  await own.stop();
  await expect(connection(page)).toHaveText("reconnecting");
  await own.start();
  await tryNow(page);
  await expect(connection(page)).toHaveText("live");
  await own.submit(await own.project("team-b"), "b1");
  await expect(rowOf(page, "b1")).toBeVisible();
});

const SLOW_MS = 5000;

test("slow (5 s an answer)", async ({ page, server, between, team }) => {
  const id = await server.submit(team.id, "a1");
  await logIn(page, server, between);
  // Every answer takes 5 s, and longer until the test has seen the page meanwhile.
  let seen = Promise.withResolvers<void>();
  between.rule(async ({ url = "" }) => {
    if (!/^\/(api|elastane)\//u.test(url)) return false;
    await Promise.all([sleep(SLOW_MS), seen.promise]);
    return false;
  });
  const lookedAt = () => {
    seen.resolve();
    seen = Promise.withResolvers();
  };
  await page.goto(`${between.url}/workloads`);
  await expect(page.getByText("Waiting for the server")).toBeVisible();
  lookedAt();
  await expect(page.getByRole("grid")).toHaveAttribute("aria-busy", "true");
  await expect(connection(page)).toHaveText("connecting");
  lookedAt();
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane.locator("[aria-hidden=true]").first()).toBeVisible();
  // A button that was pressed says that it waits, and is not pressed twice.
  await pane.getByRole("button", { name: "STOP" }).click();
  const stop = page.getByRole("alertdialog");
  const button = stop.getByRole("button", { name: "STOP" });
  await button.click();
  await button.click({ force: true });
  await expect(button).toHaveAttribute("aria-disabled", "true");
  // The list is live all the while.
  await server.submit(team.id, "a2");
  await expect(behind(page, "a2")).toBeVisible();
  lookedAt();
  await expect(stop).toBeHidden();
  await expect(pane).toContainText(id);
  const stops = between.asked.filter((one) => one.endsWith(`${id}/suspend`));
  expect(stops).toHaveLength(1);
});

/** The row with this name behind an open dialog. */
function behind(page: Page, name: string) {
  const cell = page.getByRole("rowheader", { name, exact: true, includeHidden: true });
  return page.getByRole("row", { includeHidden: true }).filter({ has: cell });
}

test("what is known of a workload that waits is shown before what has to be tried out", async ({
  page,
  server,
  between,
  team,
}) => {
  await server.submit(team.id, "a1", { compute: { gpuDevicesRequest: 64 } });
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  const release = Promise.withResolvers<boolean>();
  between.rule(async ({ url }) => url?.includes("parts=diagnosis") === true && release.promise);
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await expect(pane.getByText("P101")).toBeVisible();
  await expect(pane).toContainText("of a quota of");
  await expect(pane).not.toContainText("Where it does not fit");
  release.resolve(false);
  await expect(pane).toContainText("Where it does not fit");
  await expect(pane).toContainText("No estimate of its start");
});

const REASONS = Object.keys({
  start: true,
  "other-epoch": true,
  "too-old": true,
  access: true,
} satisfies Record<ResetReason, true>);

for (const reason of REASONS) {
  test(`stream reset, ${reason}, in the middle of a list`, async ({
    page,
    server,
    between,
    team,
  }) => {
    await server.submit(team.id, "a1");
    // The list breaks off behind its first object; the next one is whole.
    let lists = 0;
    let isOurs = false;
    const broken: Frame[] = [];
    between.rewrite = (frame) => {
      // The server may say at any time how far it is, though not in the middle of a list.
      if (isOurs && frame.type === "synced") return [];
      if (frame.type === "reset") lists += 1;
      if (lists > 1 || frame.type === "reset" || broken.length === 0) {
        if (lists === 1 && frame.type === "changed") broken.push(frame);
        return [frame];
      }
      if (frame.type === "synced") setImmediate(() => between.cut());
      return [];
    };
    await logIn(page, server, between);
    await goTo(page, "Workloads");
    await expect(rowOf(page, "a1")).toBeVisible();
    expect(lists).toBe(2);

    // A list begins in the middle of the stream, with an object that is no more, and breaks off in
    // the middle; then another begins before it is complete. The page shows the former all the while.
    const ghost = { id: "ghost", name: "ghost", phase: "Running", projectName: team.name };
    isOurs = true;
    between.send({ type: "reset", reason });
    between.send({ type: "changed", kind: "workload", id: "ghost", object: ghost });
    await expect(connection(page)).toHaveText(/^catching up/u);
    await expect(rowOf(page, "a1")).toBeVisible();
    await expect(rowOf(page, "ghost")).toBeHidden();
    between.send({ type: "reset", reason });
    between.cut();
    isOurs = false;
    await expect(connection(page)).toHaveText("live");
    expect(lists).toBe(3);
    await expect(rowOf(page, "a1")).toBeVisible();
    await expect(rowOf(page, "ghost")).toBeHidden();
  });
}

test("two servers on one host at different ports, both open", async ({ page, server, own }) => {
  await logIn(page, server);
  const other = await page.context().newPage();
  await logIn(other, own);
  await Promise.all([server.project("only-here"), own.project("only-there")]);
  for (const one of [page, other]) {
    await one.reload();
    await expect(connection(one)).toHaveText("live");
  }
  await goTo(other, "Projects");
  await expect(rowOf(other, "only-there")).toBeVisible();
  await goTo(page, "Projects");
  await expect(rowOf(page, "only-here")).toBeVisible();
  await expect(rowOf(page, "only-there")).toBeHidden();
  // Signing out of one leaves the other.
  await other.getByRole("button", { name: /^Account of/u }).click();
  await other.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await expect(other.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.reload();
  await expect(connection(page)).toHaveText("live");
});

test("12 tabs", async ({ page, server, between, team }) => {
  await logIn(page, server, between);
  const tabs = [page];
  while (tabs.length < 12) tabs.push(await page.context().newPage());
  await Promise.all(tabs.map((tab) => tab.goto(`${between.url}/workloads`)));
  for (const tab of tabs) await expect(connection(tab)).toHaveText("live");
  expect(between.streams).toBe(1);
  await server.submit(team.id, "a1");
  for (const tab of tabs) await expect(rowOf(tab, "a1")).toBeVisible();
});
