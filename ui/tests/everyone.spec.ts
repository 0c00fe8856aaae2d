// For everyone: keyboard, screen readers, zoom, contrast, motion, direction, with 200 workloads.
import { AxeBuilder } from "./axe";
import { choose, expect, goTo, logIn, MANY, type Page, rowOf, test } from "./fixture";
import { movements, sideways } from "./geometry";
import { PAGES } from "./views";

test.beforeEach(({ page, crowd }) => logIn(page, crowd));

async function violations(page: Page): Promise<string[]> {
  return new AxeBuilder(page).violations();
}

/** The cell that has the focus, as row and column of the whole grid; the header is row 1. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const cell = document.activeElement;
    const row = cell?.closest("[role=row]")?.getAttribute("aria-rowindex");
    return `${row} ${cell?.getAttribute("aria-colindex")}`;
  });
}

// The table of the ARIA Authoring Practices for data grids: key, from where, to where.
const KEYS: [name: string, keys: string[], from: string, to: string][] = [
  ["Right Arrow: one cell to the right", ["ArrowRight"], "2 1", "2 2"],
  ["Left Arrow: one cell to the left", ["ArrowLeft"], "2 2", "2 1"],
  ["Left Arrow: stays in the first cell", ["ArrowLeft"], "2 1", "2 1"],
  ["End: the last cell of the row", ["End"], "2 1", "2 9"],
  ["Right Arrow: stays in the last cell", ["ArrowRight"], "2 9", "2 9"],
  ["Home: the first cell of the row", ["Home"], "2 9", "2 1"],
  ["Down Arrow: one cell down", ["ArrowDown"], "2 1", "3 1"],
  ["Up Arrow: one cell up", ["ArrowUp"], "3 1", "2 1"],
  ["Page Down: a screen down", ["PageDown"], "2 1", "20 1"],
  ["Page Up: a screen up", ["PageUp"], "20 1", "2 1"],
  ["Ctrl+End: the last cell of the last row", ["Control+End"], "2 1", `${MANY + 1} 9`],
  ["Down Arrow: stays in the last row", ["ArrowDown"], `${MANY + 1} 9`, `${MANY + 1} 9`],
  ["Ctrl+Home: the first cell of the first row", ["Control+Home"], `${MANY + 1} 9`, "2 1"],
  ["Up Arrow: from the first row to the header", ["ArrowUp"], "2 1", "1 1"],
  ["Up Arrow: stays in the header", ["ArrowUp"], "1 1", "1 1"],
  ["Down Arrow: from the header to the first row", ["ArrowDown"], "1 1", "2 1"],
];

test("the keyboard table of the ARIA grid, row by row", async ({ page, crowd }) => {
  await page.goto(`${crowd.url}/workloads?sort=name`);
  await expect(rowOf(page, "w000")).toBeVisible();
  const grid = page.getByRole("grid");
  await expect(grid).toHaveAttribute("aria-rowcount", String(MANY + 1));
  await expect(grid).toHaveAttribute("aria-colcount", "9");
  // One stop of Tab leads into the grid, and one out of it.
  await expect(grid.locator("[tabindex='0']")).toHaveCount(1);
  await rowOf(page, "w000").getByRole("rowheader").focus();
  for (const [name, keys, from, to] of KEYS) {
    await test.step(name, async () => {
      expect(await focused(page)).toBe(from);
      for (const key of keys) await page.keyboard.press(key);
      await expect.poll(() => focused(page)).toBe(to);
      await expect(grid.locator("[tabindex='0']")).toHaveCount(1);
      await expect(page.locator(":focus")).toBeInViewport();
    });
  }
  await test.step("Shift+Space, Space, x: the row is picked, and no longer", async () => {
    const row = rowOf(page, "w000");
    for (const key of ["Shift+Space", "Space", "x"]) {
      await page.keyboard.press(key);
      await expect(row).toHaveAttribute("aria-selected", "true");
      await page.keyboard.press(key);
      await expect(row).toHaveAttribute("aria-selected", "false");
    }
  });
  await test.step("Shift+Down, Shift+Up: the range grows and shrinks", async () => {
    for (const [key, count] of [
      ["Shift+ArrowDown", 2],
      ["Shift+ArrowDown", 3],
      ["Shift+ArrowUp", 2],
    ] as const) {
      await page.keyboard.press(key);
      await expect(grid.locator("[role=row][aria-selected=true]")).toHaveCount(count);
    }
  });
  await test.step("Ctrl+A: all rows, those that are not drawn as well", async () => {
    await page.keyboard.press("Control+a");
    await expect(page.getByRole("toolbar")).toContainText(`${MANY} of ${MANY} picked`);
    await page.getByRole("toolbar").getByRole("button", { name: "STOP" }).click();
    const ask = page.getByRole("alertdialog", { name: `Stop ${MANY} workloads` });
    await expect(ask).toContainText("w000, w001, w002, w003, w004 and 195 more");
    await expect(ask).toContainText("They hold 4 GPUs.");
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
  });
  await test.step("Escape: none", async () => {
    await page.getByRole("rowheader").first().focus();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("toolbar")).toBeHidden();
    await expect(grid.locator("[role=row][aria-selected=true]")).toHaveCount(0);
  });
  await test.step("Enter in the header: sorts, and the other way", async () => {
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => focused(page)).toBe("1 1");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("columnheader", { name: /^Workload/u })).toHaveAttribute(
      "aria-sort",
      "descending",
    );
    await expect(rowOf(page, "w199")).toBeVisible();
  });
  await test.step("Enter in a row: opens its pane; Escape closes it, the focus stays", async () => {
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("region", { name: "Workload w199" })).toBeVisible();
    await expect(rowOf(page, "w199")).toHaveAttribute("aria-current", "true");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("region", { name: "Workload w199" })).toBeHidden();
    await expect(rowOf(page, "w199").getByRole("rowheader")).toBeFocused();
  });
  await test.step("Tab: out of the grid, and back to the cell", async () => {
    await page.keyboard.press("Shift+Tab");
    expect(await focused(page)).not.toBe("2 1");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("2 1");
  });
});

for (const [name, size] of [
  ["320 pixels", { width: 320, height: 640 }],
  // 1280 by 1024 pixels at four times the size.
  ["zoom 400 %", { width: 320, height: 256 }],
  ["4K", { width: 3840, height: 2160 }],
] as const) {
  test(`${name}: nothing is cut off or lies beside the screen`, async ({ page }) => {
    await page.setViewportSize(size);
    const toPage = async (to: string) => {
      const menu = page.getByRole("button", { name: "Menu" });
      if (await menu.isVisible()) await menu.click();
      await goTo(page, to);
    };
    for (const [to] of PAGES) {
      await toPage(to);
      expect([to, await sideways(page)]).toEqual([to, 0]);
    }
    await toPage("Workloads");
    const row = page.getByRole("rowheader").first();
    await row.scrollIntoViewIfNeeded();
    await expect(row).toBeInViewport();
    await row.click();
    const pane = page.getByRole("region", { name: /^Workload w/u });
    await expect(pane.getByRole("button", { name: "STOP" })).toBeVisible();
    await pane.getByRole("tab", { name: "Details" }).click();
    await pane.getByText("Preemptible").scrollIntoViewIfNeeded();
    await expect(pane.getByText("Preemptible")).toBeInViewport();
    expect(await sideways(page)).toBe(0);
    await pane.getByRole("button", { name: "Close the pane" }).click();
    await toPage("Projects");
    await page.getByRole("button", { name: "+NEW PROJECT" }).click();
    const last = page.getByRole("button", { name: "CREATE PROJECT" });
    await last.scrollIntoViewIfNeeded();
    await expect(last).toBeInViewport({ ratio: 1 });
    expect(await sideways(page)).toBe(0);
  });
}

test("forced-colors: states, bars and what is chosen stay apart", async ({ page, crowd }) => {
  await page.emulateMedia({ forcedColors: "active" });
  await goTo(page, "Nodes");
  const gpu = page.getByRole("button", { name: /^GPU 0/u }).first();
  const drawn = await gpu
    .locator("span")
    .first()
    .evaluate((part) => getComputedStyle(part).backgroundColor);
  const ground = await gpu.evaluate((box) => getComputedStyle(box).backgroundColor);
  expect(drawn).not.toBe(ground);
  await goTo(page, "Overview");
  const bar = page.getByRole("img", { name: /of a quota of/u }).first();
  const fills = await bar.evaluate((track) =>
    [track, ...track.children].map((part) => {
      const { backgroundColor, backgroundImage } = getComputedStyle(part);
      return `${backgroundColor} ${backgroundImage}`;
    }),
  );
  expect(new Set(fills).size).toBeGreaterThanOrEqual(3);
  await page.goto(`${crowd.url}/workloads/new/training`);
  await choose(page.getByRole("radio", { name: "team-a" }));
  const border = (name: string) =>
    page
      .locator("label")
      .filter({ hasText: name })
      .evaluate((tile) => getComputedStyle(tile).outlineStyle);
  expect(await border("team-a")).not.toBe(await border("team-b"));
  expect(await violations(page)).toEqual([]);
});

test("reduced motion: nothing moves by itself", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const [name] of PAGES) {
    await goTo(page, name);
    expect(await movements(page)).toBe(0);
  }
});

test("right to left: the same page, mirrored", async ({ page, crowd }) => {
  await page.addInitScript(() => {
    addEventListener("DOMContentLoaded", () => (document.documentElement.dir = "rtl"));
  });
  await page.goto(`${crowd.url}/workloads?sort=name`);
  await expect(rowOf(page, "w000")).toBeVisible();
  const place = async (name: string) =>
    (await page.getByRole("columnheader", { name, exact: true }).boundingBox())?.x ?? 0;
  expect(await place("Status")).toBeGreaterThan(await place("Project"));
  const nav = await page.getByRole("navigation").boundingBox();
  expect(nav?.x).toBeGreaterThan(720);
  await rowOf(page, "w000").getByRole("rowheader").focus();
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => focused(page)).toBe("2 2");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("region", { name: "Workload w000" })).toBeVisible();
  for (const [name] of PAGES) {
    await goTo(page, name);
    expect([name, await sideways(page)]).toEqual([name, 0]);
  }
});

test("true counts for a screen reader", async ({ page, crowd }) => {
  await page.goto(`${crowd.url}/workloads?f=phase==Running`);
  const grid = page.getByRole("grid", { name: "Workloads" });
  await expect(grid).toHaveAttribute("aria-rowcount", "5");
  await expect(page.getByText(`4 of ${MANY}`)).toBeVisible();
  await page.goto(`${crowd.url}/workloads`);
  await expect(grid).toHaveAttribute("aria-rowcount", String(MANY + 1));
  // Fewer are drawn than there are, and each says which it is.
  expect(await grid.getByRole("row").count()).toBeLessThan(80);
  await page.getByRole("rowheader").first().focus();
  await page.keyboard.press("Control+End");
  await expect(grid.locator(`[aria-rowindex='${MANY + 1}']`)).toBeInViewport();

  // The other grids, whole and with a filter, beside the numbers of the server.
  const count = async (path: string, field: string) =>
    (await crowd.api<Record<string, unknown[]>>("GET", path))[field]?.length ?? 0;
  for (const [name, path, total, one] of [
    ["Projects", "/projects", await count("/api/v1/org-unit/projects", "projects"), "team-b"],
    [
      "Environments",
      "/assets/environments",
      await count("/api/v1/asset/environment", "entries"),
      "jupyter-lab",
    ],
    [
      "Compute resources",
      "/assets/compute-resources",
      await count("/api/v1/asset/compute", "entries"),
      "one-gpu",
    ],
  ] as const) {
    const rows = page.getByRole("grid", { name });
    await page.goto(crowd.url + path);
    await expect(rows).toHaveAttribute("aria-rowcount", String(total + 1));
    await page.goto(`${crowd.url}${path}?q=${one}`);
    await expect(rows).toHaveAttribute("aria-rowcount", "2");
    await expect(page.getByText(`1 of ${total}`)).toBeVisible();
  }
});
