// Every page, tab, dialog and menu as data: its name, and how to get there.
import { choose, expect, MANY, type Page } from "./fixture";

export interface At {
  page: Page;
  /** Where the interface is. */
  url: string;
}

/** A view to look at: its name, and the way there. */
export type View = [name: string, open: (at: At) => Promise<unknown>];

export const press = (page: Page, name: string | RegExp) =>
  page.getByRole("button", { name }).click();
export const heading = (page: Page, name: string | RegExp) =>
  expect(page.getByRole("main").getByRole("heading", { name }).first()).toBeVisible();

/** Opens an address, and waits for what has to be there. */
export const at =
  (path: string, shown: string | RegExp): View[1] =>
  async ({ page, url }) => {
    await page.goto(url + path);
    await expect(page.getByText(shown).first()).toBeVisible();
  };

export const PAGES: [name: string, path: string, shown: string | RegExp][] = [
  ["Overview", "/overview", "Pending workloads"],
  ["Workloads", "/workloads?sort=-name", "w199"],
  ["Environments", "/assets/environments", "quickstart"],
  ["Compute resources", "/assets/compute-resources", "one-gpu"],
  ["Nodes", "/nodes", "node-1"],
  ["Projects", "/projects", "team-a"],
];

export const OTHERS: View[] = [
  ["a new training, first step", at("/workloads/new/training", "Start from scratch")],
  [
    "a new training, first step with problems",
    async ({ page }) => {
      await press(page, "CONTINUE");
      await expect(page.getByText("a name is needed")).toBeVisible();
    },
  ],
  [
    "a new training, second step of a template",
    async ({ page }) => {
      await choose(page.getByRole("radio", { name: /^team-a /u }));
      await choose(page.getByRole("radio", { name: /^sleeper /u }));
      await page.getByLabel("Training name").fill("new");
      await press(page, "CONTINUE");
      await expect(page.getByText("Also from template sleeper")).toBeVisible();
    },
  ],
  ["no page", at("/nothing", "There is no page at this address")],
  ["a workload that is not there", at("/workloads/none", "There is no workload with this id")],
  [
    "a workload as a page",
    async ({ page, url }) => {
      await page.goto(`${url}/workloads?q=w199`);
      await page.getByRole("rowheader").first().press("Control+Enter");
      await expect(page.getByRole("heading", { name: "w199", level: 1 })).toBeVisible();
      await expect(page.getByRole("main")).toContainText("Who is looked at before it");
    },
  ],
  ["no workload as a page", at("/workloads/page/none", "There is no workload with this id")],
  ["a node that is not there", at("/nodes/none", "There is no node none")],
  ["a reason code", at("/codes/E101", "Who is stopped")],
];

/** A pane of a workload that waits, and of one that runs. */
export const TABS: View[] = ["w199", "running"].flatMap((which) =>
  ["Explain", "Event history", "Pods", "Details"].map((tab): View => [
    `${tab} of ${which}`,
    async ({ page, url }) => {
      const query = which === "running" ? "f=phase==Running" : `q=${which}`;
      await page.goto(`${url}/workloads?${query}`);
      await page.getByRole("rowheader").first().click();
      const pane = page.getByRole("region", { name: /^Workload w/u });
      await pane.getByRole("tab", { name: tab }).click();
      await expect(pane.getByRole("tabpanel").locator("p, li, dd").first()).toBeVisible();
      // The parts of an explanation that are tried out come later.
      const isTriedOut = tab === "Explain" && which !== "running";
      if (isTriedOut) await expect(pane).toContainText("Who is looked at before it");
    },
  ]),
);

/** Opens a sheet, and has it tell every problem. */
const sheet = (path: string, button: string): View => [
  button,
  async ({ page, url }) => {
    await page.goto(url + path);
    await press(page, button);
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: /^CREATE/u }).click();
    await expect(dialog.locator("[aria-invalid=true]").first()).toBeVisible();
  },
];

/** Opens a sheet over the form of a training. */
const overForm = (button: string): View => [
  `${button} over the form of a training`,
  async ({ page, url }) => {
    await page.goto(`${url}/workloads/new/training`);
    await choose(page.getByRole("radio", { name: /^team-a /u }));
    await choose(page.getByRole("radio", { name: "Start from scratch" }));
    await page.getByLabel("Training name").fill("new");
    await press(page, "CONTINUE");
    await press(page, button);
    await expect(page.getByRole("dialog")).toBeVisible();
  },
];

/** Asks before it does this to one workload. */
export const ask = (action: string, query: string): View => [
  `${action} of one`,
  async ({ page, url }) => {
    await page.goto(`${url}/workloads?${query}`);
    await page.getByRole("rowheader").first().click();
    const pane = page.getByRole("region", { name: /^Workload w/u });
    await pane.getByRole("button", { name: action }).click();
    await expect(page.getByRole("alertdialog")).toBeVisible();
  },
];

const ofAccount = (item: string): View => [
  item,
  async ({ page, url }) => {
    await page.goto(`${url}/overview`);
    await press(page, /^Account of/u);
    await page.getByRole("menuitem", { name: item }).click();
    await expect(page.getByRole("dialog", { name: item })).toBeVisible();
  },
];

const menu = (button: string | RegExp): View => [
  String(button),
  async ({ page, url }) => {
    await page.goto(`${url}/workloads`);
    await press(page, button);
    await expect(page.getByRole("menuitem").or(page.getByRole("option")).first()).toBeVisible();
  },
];

export const DIALOGS: View[] = [
  sheet("/projects", "+NEW PROJECT"),
  sheet("/assets/environments", "+NEW ENVIRONMENT"),
  sheet("/assets/compute-resources", "+NEW COMPUTE RESOURCE"),
  [
    "Jump to",
    async ({ page, url }) => {
      await page.goto(`${url}/overview`);
      await press(page, "Jump to");
      await page.getByRole("dialog", { name: "Jump to" }).getByRole("searchbox").fill("w1");
      await expect(page.getByRole("option", { name: /^w1/u }).first()).toBeVisible();
    },
  ],
  ofAccount("Keys"),
  ofAccount("About"),
  ...["Filter by Status", "Filter by Project", "Columns", "+NEW WORKLOAD", /^Account of/u].map(
    menu,
  ),
  ...["+NEW ENVIRONMENT", "+NEW COMPUTE RESOURCE"].map(overForm),
  [
    "Views",
    async ({ page, url }) => {
      await page.goto(`${url}/workloads`);
      await press(page, "Views");
      await page.getByRole("menuitem", { name: "Save or delete…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "SAVE" }).click();
      await expect(page.getByText("a name is needed")).toBeVisible();
    },
  ],
  ask("STOP", "f=phase==Running"),
  ask("DELETE", "q=w199"),
  [
    "STOP of all",
    async ({ page, url }) => {
      await page.goto(`${url}/workloads`);
      await page.getByRole("rowheader").first().focus();
      await page.keyboard.press("Control+a");
      await page.getByRole("toolbar").getByRole("button", { name: "STOP" }).click();
      await expect(page.getByRole("alertdialog")).toContainText(`${MANY} workloads`);
    },
  ],
  [
    "the exact time of a cell",
    async ({ page, url }) => {
      await page.goto(`${url}/workloads`);
      const time = page.getByRole("gridcell").filter({ has: page.getByRole("time") });
      await time.first().focus();
      await expect(page.getByRole("tooltip")).toBeVisible();
    },
  ],
];
