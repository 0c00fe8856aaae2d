// States of views: stale, gone, nothing matches, empty; and exact times without a pointer.
import { expect, goTo, logIn, rowOf, test, tryNow } from "./fixture";

test("connection lost: what is kept is marked, until it is live again", async ({
  page,
  server,
  between,
  team,
}) => {
  await server.submit(team.id, "a1");
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toContainText("Running");
  const main = page.getByRole("main");
  await expect(main).not.toHaveAttribute("data-stale");
  const color = () => rowOf(page, "a1").evaluate((row) => getComputedStyle(row).color);
  const before = await color();
  const end = between.refuse(/\/changes/u, 503, "gone");
  between.cut();
  await expect(page.getByText(/^As of/u)).toBeVisible();
  await expect(main).toHaveAttribute("data-stale");
  await expect(rowOf(page, "a1")).toBeVisible();
  expect(await color()).not.toBe(before);
  end();
  await tryNow(page);
  await expect(main).not.toHaveAttribute("data-stale");
  expect(await color()).toBe(before);
});

test("no connection from the start: said without a time, as nothing is kept", async ({
  page,
  server,
  between,
}) => {
  const end = between.refuse(/\/changes/u, 503, "gone");
  await page.goto(await server.link(between.url));
  await expect(page.getByText("the server answers 503", { exact: true })).toBeVisible();
  await expect(page.getByText(/As of/u)).toBeHidden();
  await expect(page.getByRole("navigation")).toBeVisible();
  end();
  await tryNow(page);
  await expect(page.getByText("Ready nodes")).toBeVisible();
});

test("a workload deleted while its pane is open", async ({ app: page, server, team, watch }) => {
  // The pane may ask for what the server has deleted already.
  watch.allowFailure(/\/workloads\/[^/]+(\/explain)?$/u, 404);
  const id = await server.submit(team.id, "a1");
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Explain" }).click();
  await server.remove(id);
  await expect(pane).toContainText(/was deleted.*\d:\d\d.* asked for its deletion/u);
  await expect(pane.getByRole("button", { name: "DELETE" })).toBeHidden();
  // Its history stays, and no tab fails.
  await expect(pane.getByRole("tab")).toHaveText(["Event history"]);
  await expect(pane).toContainText("asked for its deletion");
  await expect(pane.getByRole("alert")).toHaveCount(0);
  // The address is a link that others open later.
  await page.reload();
  const later = page.getByRole("region", { name: "Workload a1" });
  await expect(later).toContainText("There is no workload a1 in the list any more");
  await expect(later).toContainText("asked for its deletion");
  await later.getByRole("button", { name: "CLOSE" }).click();
  await expect(later).toBeHidden();
  await expect(page).toHaveURL(/\/workloads$/u);
});

test("a link to a workload and to a node that never were", async ({ app: page, watch }) => {
  watch.allowFailure(/\/workloads\/none\/events$/u, 404);
  await page.goto(new URL("/workloads/none", page.url()).href);
  await expect(page.getByText("There is no workload with this id")).toBeVisible();
  await page.goto(new URL("/nodes/node-99", page.url()).href);
  await expect(page.getByText("There is no node node-99")).toBeVisible();
  await expect(page.getByRole("heading", { name: "node-1" })).toBeVisible();
});

test("nothing matches: the filter that hides most is named and removed, or all of them", async ({
  app: page,
  server,
  team,
}) => {
  await goTo(page, "Projects");
  await page.getByRole("searchbox").fill("nothing has this name");
  await expect(page.getByText("Nothing matches")).toBeVisible();
  await expect(page.getByText(/^The search “nothing has this name” hides /u)).toBeVisible();
  // It is the only filter.
  await expect(page.getByRole("button", { name: "Clear all" })).toBeHidden();
  await page.getByRole("button", { name: "Remove it" }).click();
  await expect(rowOf(page, team.name)).toBeVisible();

  for (const name of ["w1", "w2", "w3"]) await server.submit(team.id, name);
  const list = `/workloads?f=projectName==${team.name}&f=phase==Failed|Stopped`;
  await page.goto(new URL(list, page.url()).href);
  const sentence = page.getByText(/^Status is Failed or Stopped hides 3 of \d+ workloads\.$/u);
  await expect(sentence).toBeVisible();
  // It follows the workloads.
  await server.submit(team.id, "w4");
  await expect(page.getByText(/^Status is Failed or Stopped hides 4 of/u)).toBeVisible();
  await page.getByRole("button", { name: "Remove it" }).click();
  await expect(rowOf(page, "w4")).toBeVisible();
  await expect(page).toHaveURL(/\?f=projectName%3D%3D[^&]*$/u);
  await page.goto(new URL(`${list}&q=w9`, page.url()).href);
  await expect(
    page.getByText(/^Each of \d+ workloads is hidden by several filters/u),
  ).toBeVisible();
  await expect(page.getByRole("button", { name: "Remove it" })).toBeHidden();
  await page.getByRole("button", { name: "Clear all" }).click();
  await expect(page).toHaveURL(/\/workloads$/u);
  await expect(page.getByRole("button", { name: /^Remove the filter/u })).toHaveCount(0);
});

test("nothing matches in the values of a filter: a button clears the search", async ({
  app: page,
  team,
}) => {
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "Filter by Project" }).click();
  const filter = page.getByRole("dialog", { name: "Filter by Project" });
  await filter.getByRole("searchbox").fill("nothing has this name");
  await filter.getByRole("button", { name: "Clear the search" }).click();
  await expect(filter.getByRole("option", { name: team.name, exact: true })).toBeVisible();
});

test("exact times: on focus in a grid and in the pane, with the zone, and no stop of Tab for each", async ({
  app: page,
  server,
  team,
}) => {
  await server.submit(team.id, "a1");
  await page.goto(new URL(`/workloads?q=${team.name}`, page.url()).href);
  await rowOf(page, "a1").getByRole("rowheader").focus();
  const tip = page.getByRole("tooltip");
  await expect(tip).toBeHidden();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(tip).toHaveText(/20\d\d.*:\d\d.* UTC$/u);
  await expect(page.locator(":focus")).toHaveAccessibleDescription(/20\d\d/u);
  await page.keyboard.press("Escape");
  await expect(tip).toBeHidden();
  await expect(page.getByRole("grid").locator("time[tabindex]")).toHaveCount(0);

  await page.keyboard.press("Enter");
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.locator("time").first().focus();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  await expect(pane.locator("time").first()).toBeFocused();
  await expect(tip).toHaveText(/20\d\d/u);
  await pane.getByRole("tab", { name: "Event history" }).click();
  await expect(pane).toContainText(/Times are in .+\./u);
  await expect(pane.getByRole("tabpanel").locator("time[tabindex]")).toHaveCount(0);
});

test("an open history grows with events that change no column, and asks for none of others", async ({
  app: page,
  server,
  team,
}) => {
  const id = await server.submit(team.id, "a1");
  const other = await server.submit(team.id, "a2");
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Event history" }).click();
  await expect(pane).toContainText("Started");
  const asked: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/events")) asked.push(request.url());
  });
  const path = "/api/v1/workloads/trainings";
  await server.api("PATCH", `${path}/${other}`, { spec: { labels: [{ name: "x", value: "1" }] } });
  await server.api("PATCH", `${path}/${id}`, { spec: { labels: [{ name: "x", value: "1" }] } });
  await expect(pane).toContainText(/changed .*labels/u);
  expect(asked).toHaveLength(1);
});

test("no network, while the server on this machine answers", async ({
  app: page,
  server,
  team,
}) => {
  await server.submit(team.id, "a1");
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toContainText("Running");
  await page.evaluate(() => dispatchEvent(new Event("offline")));
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Explain" }).click();
  await expect(pane).toContainText("of a quota of");
});

test("a reason code that is not there names the nearest", async ({
  page,
  server,
  between,
  watch,
}) => {
  watch.allowFailure(/\/codes\/P1O2$/u, 404);
  await logIn(page, server, between);
  await page.goto(`${between.url}/codes/P1O2`);
  await expect(page.getByRole("alert")).toContainText("did you mean `P102`?");
});
