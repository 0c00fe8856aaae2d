// Faults of the connection: the server goes, is slow, comes back, is another version.
import type { Frame } from "./between";
import { choose, expect, goTo, logIn, rowOf, test, tryNow } from "./fixture";

test("server gone, and restarted", async ({ page, own }) => {
  await logIn(page, own);
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await own.stop();
  await expect(page.getByText("reconnecting")).toBeVisible();
  await expect(page.getByText(/^As of/u)).toBeVisible();
  // What was known stays on the page.
  await expect(page.getByText("Ready nodes")).toBeVisible();
  await own.start();
  // The session of the local administrator ended with the former start.
  const again = page.getByRole("dialog", { name: "Log in again" });
  await expect(again).toBeVisible();
  // A link that is opened in another tab logs this one in as well.
  const other = await page.context().newPage();
  await logIn(other, own);
  await expect(again).toBeHidden();
  await expect(page.getByText("live", { exact: true })).toBeVisible();
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
  await expect(page.getByText("reconnecting")).toBeVisible();
  await own.start();
  await tryNow(page);
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await own.submit(await own.project("team-b"), "b1");
  await expect(rowOf(page, "b1")).toBeVisible();
});

test("slow, 5 s an answer", async ({ page, server, between, team }) => {
  const id = await server.submit(team.id, "a1");
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  const release = Promise.withResolvers<boolean>();
  // Not by a clock: an answer comes when the test says so, after what is seen until then.
  between.rule(async ({ url, method }) => {
    const isSlow = url?.includes("/api/v1/workloads/") === true || method === "POST";
    return isSlow && (await release.promise);
  });
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane.locator("[aria-hidden=true]").first()).toBeVisible();
  // The grid is live all the while, and a button that was pressed says that it waits.
  await pane.getByRole("button", { name: "STOP" }).click();
  const stop = page.getByRole("alertdialog");
  await stop.getByRole("button", { name: "STOP" }).click();
  await stop.getByRole("button", { name: "STOP" }).click({ force: true });
  await expect(stop.getByRole("button", { name: "STOP" })).toHaveAttribute("aria-disabled", "true");
  await server.submit(team.id, "a2");
  await expect(page.getByText("1 new ↑").or(rowOf(page, "a2"))).toBeVisible();
  release.resolve(false);
  await expect(stop).toBeHidden();
  await expect(pane).toContainText(id);
  const stops = between.asked.filter((one) => one.endsWith(`${id}/suspend`));
  expect(stops).toHaveLength(1);
});

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

test("slow at the first answer of all", async ({ page, server, between }) => {
  await logIn(page, server, between);
  const release = Promise.withResolvers<boolean>();
  between.rule(async ({ url }) => url === "/elastane/v1/session" && (await release.promise));
  await page.reload();
  await expect(page.getByText("Waiting for the server")).toBeVisible();
  release.resolve(false);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
});

test("upgraded under an open page, and a file of the former version is missing", async ({
  page,
  server,
  between,
  team,
  watch,
}) => {
  watch.expected.push(/Failed to fetch dynamically imported module/u);
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  await choose(page.getByRole("radio", { name: team.name }));
  await page.getByLabel("Training name").fill("typed-before");
  between.rewrite = (frame) => [
    frame.kind === "server" ? { ...frame, object: { ...frame.object, ...NEXT } } : frame,
  ];
  const files = between.refuse(/^\/_ui\/Nodes-/u, 404, "there is no such file");
  between.cut();
  const notice = page.getByRole("status").filter({ hasText: "version 9.9.9" });
  await expect(notice).toContainText("Reload to use it. What you typed is kept.");

  await page.getByRole("navigation").getByRole("link", { name: "Nodes" }).click();
  await expect(page.getByRole("heading", { name: "A file of this page is missing" })).toBeVisible();
  // The rest of the page works.
  await page.goBack();
  await expect(page.getByLabel("Training name")).toHaveValue("typed-before");
  between.rewrite = (frame) => [frame];
  files();
  await notice.getByRole("button", { name: "Reload" }).click();
  await expect(page.getByLabel("Training name")).toHaveValue("typed-before");
  await expect(page.getByRole("radio", { name: team.name })).toBeChecked();
  await expect(notice).toBeHidden();
});

const NEXT = { version: "9.9.9", interface: "0".repeat(64) };

for (const reason of ["start", "other-epoch", "too-old", "access"]) {
  test(`stream reset, ${reason}, in the middle of a list`, async ({
    page,
    server,
    between,
    team,
  }) => {
    await server.submit(team.id, "a1");
    // The list breaks off behind its first object; the next one is whole.
    let lists = 0;
    const broken: Frame[] = [];
    between.rewrite = (frame) => {
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
    between.send({ type: "reset", reason });
    between.send({ type: "changed", kind: "workload", id: "ghost", object: ghost });
    await expect(page.getByText("catching up")).toBeVisible();
    await expect(rowOf(page, "a1")).toBeVisible();
    await expect(rowOf(page, "ghost")).toBeHidden();
    between.send({ type: "reset", reason });
    between.cut();
    await expect(page.getByText("live", { exact: true })).toBeVisible();
    expect(lists).toBe(3);
    await expect(rowOf(page, "a1")).toBeVisible();
    await expect(rowOf(page, "ghost")).toBeHidden();
  });
}

test("two servers on one host at different ports, both open", async ({ page, server, own }) => {
  await logIn(page, server);
  const other = await page.context().newPage();
  await logIn(other, own);
  await own.project("only-there");
  for (const one of [page, other]) {
    await one.reload();
    await expect(one.getByText("live", { exact: true })).toBeVisible();
  }
  await goTo(other, "Projects");
  await expect(rowOf(other, "only-there")).toBeVisible();
  await goTo(page, "Projects");
  await expect(page.getByRole("grid")).toBeVisible();
  await expect(rowOf(page, "only-there")).toBeHidden();
  // Signing out of one leaves the other.
  await other.getByRole("button", { name: /^Account of/u }).click();
  await other.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await expect(other.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.reload();
  await expect(page.getByText("live", { exact: true })).toBeVisible();
});

test("12 tabs", async ({ page, server, between, team }) => {
  await logIn(page, server, between);
  const tabs = [page];
  while (tabs.length < 12) tabs.push(await page.context().newPage());
  await Promise.all(tabs.map((tab) => tab.goto(`${between.url}/workloads`)));
  for (const tab of tabs) await expect(tab.getByText("live", { exact: true })).toBeVisible();
  expect(between.streams).toBe(1);
  await server.submit(team.id, "a1");
  for (const tab of tabs) await expect(rowOf(tab, "a1")).toBeVisible();
});
