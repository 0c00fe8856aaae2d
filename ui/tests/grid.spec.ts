// Choices of a reader for a list: columns, their order and width, saved views, rows that are picked.
import { AxeBuilder } from "./axe";
import { expect, goTo, logIn, type Page, rowOf, test } from "./fixture";

function headers(page: Page): Promise<string[]> {
  return page.getByRole("columnheader").allInnerTexts();
}

test("columns are chosen, ordered and made wider, and the address says which", async ({
  app: page,
  server,
  team,
}) => {
  await server.submit(team.id, "a1");
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toContainText("Running");
  for (const name of ["Type", "Pods", "Nodes"]) {
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("menuitem", { name }).click();
  }
  await expect(page.getByRole("columnheader", { name: "Nodes" })).toBeVisible();
  await expect(rowOf(page, "a1")).toContainText(/node-\d/u);
  expect(await headers(page)).not.toContain("Pods");
  // From the keyboard: Status one place to the right, and wider.
  const status = page.getByRole("columnheader", { name: "Status" });
  await status.focus();
  const before = (await status.boundingBox())?.width ?? 0;
  await page.keyboard.press("Shift+ArrowRight");
  await expect.poll(async () => (await status.boundingBox())?.width).toBe(before + 16);
  await page.keyboard.press("Alt+ArrowRight");
  await expect(status).toBeFocused();
  await expect
    .poll(async () => (await headers(page)).slice(0, 3))
    .toEqual(["Workload", "Why", "Status"]);
  // By the mouse: dragged by its end.
  const box = await status.boundingBox();
  if (!box) throw new Error("no header");
  await page.mouse.move(box.x + box.width - 3, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width + 37, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await expect
    .poll(async () => (await status.boundingBox())?.width)
    .toBeGreaterThan(box.width + 30);

  const wide = (await status.boundingBox())?.width;
  await page.reload();
  await expect(status).toBeVisible();
  expect((await headers(page)).slice(0, 3)).toEqual(["Workload", "Why", "Status"]);
  expect((await status.boundingBox())?.width).toBe(wide);
  // The browser keeps them for an address that names none.
  await goTo(page, "Overview");
  await goTo(page, "Workloads");
  await expect(page).toHaveURL(/\/workloads$/u);
  await expect(status).toBeVisible();
  expect((await headers(page)).slice(0, 3)).toEqual(["Workload", "Why", "Status"]);
  await page.getByRole("button", { name: "Columns" }).click();
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await page.getByRole("menuitem", { name: "As at first" }).click();
  await expect(page.getByRole("columnheader", { name: "Pods" })).toBeVisible();
  await page.goto(new URL("/workloads", page.url()).href);
  await expect(page.getByRole("columnheader", { name: "Pods" })).toBeVisible();
});

test("columns of the original that are hidden at first", async ({ app: page, server, team }) => {
  await server.submit(team.id, "a1");
  const ids = "department,architecture,gpusRequested,gpusAllocated,createdAt";
  await page.goto(new URL(`/workloads?q=${team.name}&cols=${ids}`, page.url()).href);
  await expect(rowOf(page, "a1").getByRole("gridcell")).toHaveText([
    "default",
    "Standard",
    "1",
    "1",
    /^\d+:\d\d:\d\d/u,
  ]);
});

test("a view is saved under a name, opened and deleted", async ({ app: page }) => {
  await page.goto(new URL("/workloads?f=phase==Failed&sort=-name", page.url()).href);
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Save or delete…" }).click();
  const dialog = page.getByRole("dialog", { name: "Views" });
  await dialog.getByRole("button", { name: "SAVE" }).click();
  await expect(dialog.getByText("a name is needed")).toBeVisible();
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await dialog.getByLabel("Name of this view").fill("What failed <b>");
  await dialog.getByRole("button", { name: "SAVE" }).click();
  await goTo(page, "Overview");
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "What failed <b>" }).click();
  await expect(page).toHaveURL(/f=phase%3D%3DFailed|f=phase==Failed/u);
  await expect(
    page.getByRole("button", { name: "Remove the filter Status: Failed" }),
  ).toBeVisible();
  await page.getByRole("button", { name: "Views" }).click();
  await page.getByRole("menuitem", { name: "Save or delete…" }).click();
  await dialog.getByRole("button", { name: "Delete the view What failed <b>" }).click();
  await expect(dialog.getByLabel("Name of this view")).toBeFocused();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Views" }).click();
  await expect(page.getByRole("menuitem")).toHaveText([/^All, as at first/u, "Save or delete…"]);
});

test("several workloads are picked and deleted at once", async ({ app: page, server, team }) => {
  for (const name of ["a1", "a2", "a3"]) await server.submit(team.id, name);
  await page.goto(new URL(`/workloads?f=projectName==${team.name}&sort=name`, page.url()).href);
  await rowOf(page, "a1").locator("[data-check]").click();
  await rowOf(page, "a2").click({ modifiers: ["Control"] });
  await expect(page.getByRole("toolbar")).toContainText("2 of 3 picked");
  await page.getByRole("toolbar").getByRole("button", { name: "DELETE" }).click();
  const ask = page.getByRole("alertdialog", { name: "Delete 2 workloads" });
  await expect(ask).toContainText("a1, a2");
  await ask.getByRole("button", { name: "DELETE" }).click();
  await expect(ask).toBeHidden();
  await expect(page.getByRole("toolbar")).toBeHidden();
  // Under the pointer rows keep their places, greyed; elsewhere they leave.
  await page.mouse.move(5, 5);
  await expect(rowOf(page, "a1")).toBeHidden();
  await expect(rowOf(page, "a2")).toBeHidden();
  await expect(rowOf(page, "a3")).toBeVisible();
});

test("a page of a row and back: the list is where it was, with the focus in the row", async ({
  page,
  crowd,
}) => {
  await logIn(page, crowd);
  await page.goto(`${crowd.url}/workloads?sort=name`);
  const grid = page.getByRole("grid");
  const row = rowOf(page, "w100").getByRole("rowheader");
  await expect(rowOf(page, "w000")).toBeVisible();
  await grid.evaluate((element) => element.scrollTo({ top: element.scrollHeight / 2 }));
  await row.focus();
  const top = () => grid.evaluate((element) => element.scrollTop);
  const before = await top();
  expect(before).toBeGreaterThan(0);
  for (const back of [() => page.keyboard.press("Escape"), () => page.goBack()]) {
    await page.keyboard.press("Control+Enter");
    await expect(page.getByRole("heading", { name: "w100", level: 1 })).toBeVisible();
    await expect(grid).toBeHidden();
    await back();
    await expect(row).toBeFocused();
    expect(await top()).toBe(before);
  }
  // On a phone the pane has the whole width already, and the page looks the same.
  await page.setViewportSize({ width: 320, height: 640 });
  await page.keyboard.press("Enter");
  const pane = page.getByRole("region", { name: "Workload w100" });
  await expect(pane).toBeVisible();
  await expect(grid).toBeHidden();
  await expect(pane.getByRole("link", { name: "Open as a page" })).toBeHidden();
});
