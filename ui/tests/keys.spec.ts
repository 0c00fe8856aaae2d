// Every key of the table that `?` shows does what the table says.
import { KEYS } from "../src/app/key-table";
import { expect, goTo, logIn, type Page, rowOf as row, test } from "./fixture";

interface At {
  page: Page;
  /** The project of the test, which has the workloads w1 and w2. */
  team: string;
  /** Adds a workload. */
  submit: (name: string) => Promise<unknown>;
}

const h1 = (page: Page, name: string) =>
  expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
const pane = (page: Page) => page.getByRole("region", { name: "Workload w2" });

async function type(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

/** The focus is in the row of w2, of the workloads of the project alone. */
async function inRow({ page, team }: At): Promise<void> {
  await page.goto(new URL(`/workloads?f=projectName==${team}`, page.url()).href);
  await row(page, "w2").getByRole("rowheader").focus();
}

async function opened(at: At, tab?: string): Promise<void> {
  await inRow(at);
  await type(at.page, "Enter");
  await expect(pane(at.page)).toBeVisible();
  if (tab) await expect(pane(at.page).getByRole("tab", { name: tab })).toBeVisible();
}

async function isChosen(page: Page, tab: string): Promise<void> {
  const found = pane(page).getByRole("tab", { name: tab });
  await expect(found).toHaveAttribute("aria-selected", "true");
}

/** A key of a tab acts on the row that has the focus, and in the pane. */
const tabKey = (key: string, tab: string) => async (at: At) => {
  await inRow(at);
  await type(at.page, key);
  await isChosen(at.page, tab);
  await pane(at.page).getByRole("tab", { name: "Pods" }).click();
  await isChosen(at.page, "Pods");
  await type(at.page, key);
  await isChosen(at.page, tab);
};

const asks = async (page: Page, key: string, title: string) => {
  await type(page, key);
  const question = page.getByRole("alertdialog", { name: title });
  await expect(question).toBeVisible();
  await type(page, "Escape");
  await expect(question).toBeHidden();
  // The row has the focus again once the question is gone.
  await expect(page.locator('[role="rowheader"]:focus')).toBeVisible();
};

const width = async (page: Page) => (await pane(page).boundingBox())?.width ?? 0;

const columns = (page: Page) => page.getByRole("columnheader").allInnerTexts();

const CHECKS: Record<string, (at: At) => Promise<void>> = {
  "Ctrl K": async ({ page, team }) => {
    await type(page, "Control+k");
    const jump = page.getByRole("dialog", { name: "Jump to" });
    await expect(jump.getByRole("option", { name: "Projects page" })).toBeVisible();
    // Other tests leave workloads of this name.
    await page.keyboard.type(`w2 ${team}`);
    await expect(jump.getByRole("option", { name: `w2 workload of ${team}` })).toBeVisible();
    await type(page, "Enter");
    await expect(pane(page)).toBeVisible();
    await type(page, "Control+k");
    await page.keyboard.type("node");
    await expect(jump.getByRole("option")).toHaveCount(1);
    await type(page, "Enter");
    await h1(page, "Nodes");
  },
  "?": async ({ page }) => {
    await type(page, "?");
    const listed = page.getByRole("dialog", { name: "Keys" }).getByRole("term");
    await expect(listed).toHaveText(KEYS.map(({ keys }) => keys));
    await type(page, "Escape");
  },
  "g o": async ({ page }) => {
    await type(page, "g", "o");
    await h1(page, "Overview");
  },
  "g w": async ({ page }) => {
    await type(page, "g", "w");
    await h1(page, "Workloads");
  },
  "g p": async ({ page }) => {
    await type(page, "g", "p");
    await h1(page, "Projects");
  },
  "g n": async ({ page }) => {
    await type(page, "g", "n");
    await h1(page, "Nodes");
  },
  "c t": async ({ page }) => {
    await type(page, "c", "t");
    await expect(page.getByText("step 1 of 2")).toBeVisible();
  },
  "/": async (at) => {
    await inRow(at);
    await type(at.page, "/");
    await expect(at.page.getByRole("searchbox")).toBeFocused();
  },
  f: async (at) => {
    await inRow(at);
    await type(at.page, "f");
    await at.page.getByRole("menuitem", { name: "Pending" }).press("Enter");
    await expect(at.page).toHaveURL(/phase%3D%3DPending/u);
  },
  v: async (at) => {
    await inRow(at);
    await type(at.page, "v");
    await expect(at.page.getByRole("menuitem", { name: "All, as at first" })).toBeFocused();
    await type(at.page, "Escape");
  },
  R: async (at) => {
    await inRow(at);
    await at.submit("new");
    await expect(at.page.getByRole("button", { name: "1 new ↑" })).toBeVisible();
    await type(at.page, "R");
    await expect(row(at.page, "new")).toBeVisible();
  },
  "↑ ↓ j k": async (at) => {
    await inRow(at);
    for (const [away, back] of [
      ["ArrowDown", "ArrowUp"],
      ["j", "k"],
    ] as const) {
      await type(at.page, away);
      await expect(row(at.page, "w1").getByRole("rowheader")).toBeFocused();
      await type(at.page, back);
      await expect(row(at.page, "w2").getByRole("rowheader")).toBeFocused();
    }
  },
  Enter: (at) => opened(at),
  "Ctrl Enter": async (at) => {
    const { page } = at;
    const grid = page.getByRole("grid");
    const isPage = async (is: boolean) => {
      await expect(page.getByRole("heading", { name: "w2", level: 1 })).toBeVisible({
        visible: is,
      });
      await expect(grid).toBeVisible({ visible: !is });
    };
    await inRow(at);
    await type(page, "Control+Enter");
    await isPage(true);
    await type(page, "Escape");
    await isPage(false);
    await expect(pane(page)).toBeHidden();
    await expect(row(page, "w2").getByRole("rowheader")).toBeFocused();
    // From the pane, with its tab; the page stays over a reload, and the list keeps its filter.
    await type(page, "Enter");
    await pane(page).getByRole("tab", { name: "Details" }).click();
    await isChosen(page, "Details");
    await type(page, "Control+Enter");
    await isPage(true);
    await isChosen(page, "Details");
    await page.goBack();
    await isPage(false);
    await isChosen(page, "Details");
    await page.goForward();
    await page.reload();
    await isPage(true);
    await isChosen(page, "Details");
    await type(page, "Escape");
    await expect(row(page, "w1")).toBeVisible();
    await expect(page).toHaveURL(new RegExp(`/workloads\\?f=projectName==${at.team}$`, "u"));
    // Beside the list: from within the pane, by the key and by the button.
    const name = row(page, "w2").getByRole("rowheader");
    for (const close of [
      () => type(page, "Escape"),
      () => pane(page).getByRole("button", { name: "Close the pane" }).click(),
    ]) {
      await name.press("Enter");
      await pane(page).getByRole("tab", { name: "Details" }).click();
      await close();
      await expect(pane(page)).toBeHidden();
      await expect(name).toBeFocused();
    }
    // By links as well.
    const open = async () => {
      await row(page, "w2").getByRole("rowheader").click();
      await pane(page).getByRole("link", { name: "Open as a page" }).click();
      await isPage(true);
    };
    await open();
    await type(page, "Escape");
    await isPage(false);
    await expect(row(page, "w2").getByRole("rowheader")).toBeFocused();
    await open();
    await page.getByRole("link", { name: "Back to the list" }).click();
    await isPage(false);
    await expect(pane(page)).toBeHidden();
  },
  e: tabKey("e", "Explain"),
  d: tabKey("d", "Details"),
  "[ ]": async (at) => {
    await opened(at, "Details");
    const before = await width(at.page);
    await type(at.page, "]");
    await expect.poll(() => width(at.page)).toBe(before + 40);
    await at.page.reload();
    await expect.poll(() => width(at.page)).toBe(before + 40);
    await type(at.page, "[", "[");
    await expect.poll(() => width(at.page)).toBe(before - 40);
  },
  Esc: async (at) => {
    await opened(at);
    await type(at.page, "Escape");
    await expect(pane(at.page)).toBeHidden();
  },
  "x, Space": async (at) => {
    await inRow(at);
    for (const key of ["x", "Space"]) {
      await type(at.page, key);
      await expect(at.page.getByText(/^1 of \d+ picked/u)).toBeVisible();
      await type(at.page, key);
      await expect(at.page.getByText(/picked$/u)).toBeHidden();
    }
  },
  "Shift ↑ ↓": async (at) => {
    await inRow(at);
    await type(at.page, "Shift+ArrowDown");
    await expect(at.page.getByText(/^2 of \d+ picked/u)).toBeVisible();
  },
  "Ctrl A": async (at) => {
    await inRow(at);
    await type(at.page, "Control+a");
    await expect(at.page.getByText(/^(\d+) of \1 picked/u)).toBeVisible();
  },
  ".": async (at) => {
    await inRow(at);
    await type(at.page, ".");
    const menu = at.page.getByRole("menu", { name: "Actions of w2" });
    const names = ["DELETE", "Explain", "Details"];
    for (const name of names) await expect(menu.getByRole("menuitem", { name })).toBeVisible();
    await type(at.page, "Escape");
    await expect(row(at.page, "w2").getByRole("rowheader")).toBeFocused();
    await type(at.page, ".");
    await menu.getByRole("menuitem", { name: "Details" }).press("Enter");
    await isChosen(at.page, "Details");
  },
  "s r Del": async (at) => {
    await inRow(at);
    await asks(at.page, "s", `Stop w2 of ${at.team}`);
    await asks(at.page, "Delete", `Delete w2 of ${at.team}`);
    await type(at.page, "s");
    await at.page.getByRole("alertdialog").getByRole("button", { name: "STOP" }).press("Enter");
    await expect(row(at.page, "w2")).toContainText("Stopped");
    await row(at.page, "w2").getByRole("rowheader").focus();
    await asks(at.page, "r", `Run w2 of ${at.team}`);
  },
  "Shift ← →": async (at) => {
    await inRow(at);
    const head = at.page.getByRole("columnheader").first();
    await head.focus();
    const before = (await head.boundingBox())?.width ?? 0;
    await type(at.page, "Shift+ArrowRight");
    await expect.poll(async () => (await head.boundingBox())?.width).toBeGreaterThan(before);
    await type(at.page, "Shift+ArrowLeft");
    await expect.poll(async () => (await head.boundingBox())?.width).toBe(before);
  },
  "Alt ← →": async (at) => {
    await inRow(at);
    const [first, second, third] = await columns(at.page);
    await at.page.getByRole("columnheader").nth(1).focus();
    await type(at.page, "Alt+ArrowRight");
    await expect
      .poll(async () => (await columns(at.page)).slice(0, 3))
      .toEqual([first, third, second]);
    await type(at.page, "Alt+ArrowLeft");
    await expect
      .poll(async () => (await columns(at.page)).slice(0, 3))
      .toEqual([first, second, third]);
  },
};

test("each key of the table does what the table says", async ({ page, server, team }) => {
  test.setTimeout(300_000);
  await server.submit(team.id, "w1");
  await server.submit(team.id, "w2");
  await logIn(page, server);
  const at = { page, team: team.name, submit: (name: string) => server.submit(team.id, name) };
  expect(Object.keys(CHECKS)).toEqual(KEYS.map(({ keys }) => keys));
  for (const { keys, what } of KEYS) {
    await test.step(`${keys}: ${what}`, async () => {
      await CHECKS[keys]?.(at);
    });
  }
  await goTo(page, "Overview");
});
