// Faults of what is typed and of what there is: taken names, hostile texts, too many of a thing.
import { AxeBuilder } from "./axe";
import type { Frame } from "./between";
import { choose, expect, goTo, logIn, type Page, rowOf, test } from "./fixture";

test("a wrong name and a negative count at once", async ({ app: page }) => {
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill("Team <script>");
  await sheet.getByLabel(/^GPU devices/u).fill("-2");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(sheet.getByLabel("Project name")).toHaveAttribute("aria-invalid", "true");
  await expect(sheet.getByText("0 or more")).toBeVisible();
  // The first of them has the focus.
  await expect(sheet.getByLabel("Project name")).toBeFocused();
  expect(await new AxeBuilder(page).violations()).toEqual([]);
});

test("name of a project taken between typing and creating", async ({ page, server, between }) => {
  await logIn(page, server, between);
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill("contested");
  // The page does not learn of it before the server refuses.
  between.rewrite = (frame) => (JSON.stringify(frame).includes("contested") ? [] : [frame]);
  await server.project("contested");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).dblclick();
  await expect(sheet.getByRole("alert")).toContainText("already exists");
  await expect(sheet.getByLabel("Project name")).toHaveValue("contested");
  expect(posts(between.asked, "/api/v1/org-unit/projects")).toBe(1);
});

interface Form {
  project: string;
  name: string;
}

/** Fills the form of a training up to its last button. */
async function training(page: Page, { project, name }: Form): Promise<void> {
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  await choose(page.getByRole("radio", { name: project }));
  await page.getByLabel("Training name").fill(name);
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await choose(page.getByRole("radio", { name: `${project}-image` }));
  await choose(page.getByRole("radio", { name: `${project}-gpus` }));
}

test("name of a training taken between typing and creating: created once, never twice", async ({
  page,
  server,
  between,
  team,
}) => {
  await server.asset("environment", `${team.name}-image`, { image: "ubuntu" });
  await server.asset("compute", `${team.name}-gpus`, { gpuDevicesRequest: 1 });
  await logIn(page, server, between);
  await training(page, { project: team.name, name: "a1" });
  await server.submit(team.id, "a1");
  await page.getByRole("button", { name: "CREATE TRAINING" }).dblclick();
  await expect(page.getByRole("alert")).toContainText("already exists");
  await expect(page.getByRole("main")).toContainText(`There is a workload a1 in ${team.name} now`);
  expect(posts(between.asked, "/api/v1/workloads/trainings")).toBe(1);

  // It is created, and the answer is lost: the page does not know, and the stream tells.
  await page.getByRole("button", { name: "BACK" }).click();
  await expect(page.getByText(`the name is taken in ${team.name}`)).toBeVisible();
  await page.getByLabel("Training name").fill("a2");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  const arrives = once(() => server.submit(team.id, "a2"));
  const lost = between.rule(async ({ url, method }, answer) => {
    if (method !== "POST" || url !== "/api/v1/workloads/trainings") return false;
    await arrives();
    answer.destroy();
    return true;
  });
  await page.getByRole("button", { name: "CREATE TRAINING" }).dblclick();
  await expect(page.getByRole("alert")).toContainText("was not reached");
  lost();
  await page.getByRole("link", { name: "Open it" }).click();
  await expect(page.getByRole("region", { name: "Workload a2" })).toBeVisible();
});

/** Browsers send a request again whose connection broke before any answer. */
function once<T>(act: () => T): () => T {
  let done: T | undefined;
  return () => (done ??= act());
}

function posts(asked: string[], path: string): number {
  return asked.filter((one) => one === `POST ${path}`).length;
}

const HOSTILE = {
  script: "<script>document.title='owned'</script>",
  image: '"><img src=x onerror="document.title=`owned`">',
  long: "x".repeat(10_000),
  rightToLeft: "\u202Egpj.\u2066exe\u05D0",
  nul: "a\u0000b",
  half: "\uD83D",
};

test("a message and a label with <script>, 10,000 characters, right-to-left marks, NUL", async ({
  page,
  server,
  between,
  team,
}) => {
  const { half, ...texts } = HOSTILE;
  const variables = Object.entries(texts)
    .filter(([name]) => name !== "nul")
    .map(([name, value]) => ({ name, value }));
  await server.submit(team.id, "a1", { environmentVariables: variables });
  // The server lets no such names in: what if it did?
  const names = Object.entries({ ...texts, half });
  between.rewrite = (frame) => {
    if (frame.kind !== "workload" || frame.type !== "changed") return [frame];
    const copies = names.map(([id, text]): Frame => {
      const why = { code: "P102", message: text, at: "2026-11-28T09:00:00Z" };
      const more = { id, name: text, submittedBy: text, phase: "Pending", why };
      return { ...frame, id, object: { ...frame.object, ...more } };
    });
    return [frame, ...copies];
  };
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await expect(page.getByRole("rowheader", { name: "owned" }).first()).toBeVisible();
  const grid = page.getByRole("grid");
  await expect(grid).toHaveAttribute("aria-rowcount", String(names.length + 2));
  for (const [, text] of names.filter(([id]) => id !== "half" && id !== "nul")) {
    await expect(page.getByRole("rowheader").getByText(text, { exact: true })).toBeVisible();
  }
  // Right-to-left text stays within its cell: the columns after it are where they are in other rows.
  const lefts = await page
    .locator("[data-row] [data-column='2']")
    .evaluateAll((cells) => new Set(cells.map((cell) => cell.getBoundingClientRect().left)).size);
  expect(lefts).toBe(1);
  for (const id of ["rightToLeft", "long", "half", "nul"]) {
    await page.goto(`${between.url}/workloads/${id}/details`);
    await expect(page.getByRole("alert")).toContainText("not found");
    expect(await sideways(page)).toBeLessThanOrEqual(1440);
  }
  await page.goto(`${between.url}/workloads`);
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane).toContainText(HOSTILE.script);
  await expect(pane).toContainText("x".repeat(1000));
  expect(await sideways(page)).toBeLessThanOrEqual(1440);
  expect(await page.title()).toBe("Elastane");
});

function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth);
}

test("a name with <script>, 10,000 characters, right-to-left marks, NUL, half an emoji", async ({
  app: page,
}) => {
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  for (const text of Object.values(HOSTILE)) {
    await sheet.getByLabel("Project name").fill(text);
    await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
    await expect(sheet.getByLabel("Project name")).toHaveAccessibleDescription(/at most 49/u);
    await expect(sheet.getByLabel("Project name")).toHaveAttribute("aria-invalid", "true");
    await sheet.getByLabel("Project name").fill("");
  }
  await sheet.getByRole("button", { name: "CANCEL" }).click();

  // In the search, which goes to the address, and in addresses themselves.
  for (const text of Object.values(HOSTILE)) {
    await page.getByRole("searchbox").fill(text);
    await expect(page.getByText("Nothing matches")).toBeVisible();
    await page.reload();
    await expect(page.getByText("Nothing matches")).toBeVisible();
  }
  const addresses = [
    "/workloads/%00",
    "/workloads/%E0%A4%A",
    "/workloads/%3Cscript%3E",
    "/projects?f=%E0%A4%A&f===&sort=%00&q=%",
    "/workloads?f=name=@%3Cscript%3E&sort=__proto__",
    "/assets/constructor",
    "/nodes/%F0%9F",
  ];
  const root = new URL(page.url()).origin;
  for (const address of addresses) {
    await page.goto(root + address);
    await expect(page.getByRole("navigation")).toBeVisible();
    await expect(page.getByText("This page failed")).toBeHidden();
    await expect(page.getByRole("main").getByRole("heading").first()).toBeVisible();
  }
  expect(await page.title()).toBe("Elastane");
});

function clone(frame: Frame, number: number): Frame {
  const id = String(100_000 + number);
  return { ...frame, id, object: { ...frame.object, id, name: `made-${number}` } };
}

test("10,000 projects", async ({ page, server, between, team }) => {
  const many = 10_000;
  between.rewrite = (frame) => {
    const isOurs = frame.kind === "project" && frame.object?.name === team.name;
    return isOurs ? [frame, ...Array.from({ length: many }, (_, n) => clone(frame, n))] : [frame];
  };
  await logIn(page, server, between);
  await expect(page.getByRole("link", { name: /more projects/u })).toBeVisible();
  await goTo(page, "Projects");
  const grid = page.getByRole("grid");
  await expect(grid).toHaveAttribute("aria-rowcount", /^1\d{4}$/u);
  expect(await grid.getByRole("row").count()).toBeLessThan(80);
  await grid.getByRole("rowheader").first().focus();
  await page.keyboard.press("Control+End");
  await expect(rowOf(page, team.name)).toBeVisible();
  await page.getByRole("searchbox").fill("made-9999");
  await expect(rowOf(page, "made-9999")).toBeVisible();

  // Filters and forms offer some, and find the others.
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "Filter by Project" }).click();
  const filter = page.getByRole("dialog", { name: "Filter by Project" });
  await expect(filter.getByRole("option")).toHaveCount(50);
  await filter.getByRole("searchbox").fill(team.name);
  await filter.getByRole("option", { name: team.name, exact: true }).click();
  await expect(page.getByRole("button", { name: /^Remove the filter/u })).toBeVisible();
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  const tiles = page.getByRole("radiogroup", { name: "Project" }).getByRole("radio");
  await expect(tiles).toHaveCount(24);
  const search = page.getByRole("searchbox", { name: "Search Project" });
  await search.pressSequentially("nothing-has-this-name");
  await expect(page.getByText("Nothing matches")).toBeVisible();
  await page.getByRole("button", { name: "Clear the search" }).click();
  await expect(tiles).toHaveCount(24);
  await search.pressSequentially(team.name);
  await expect(tiles).toHaveCount(1);
  await choose(page.getByRole("radio", { name: team.name }));
  // The one that is chosen stays on the page, whatever is searched for.
  await search.press("Control+a");
  await search.pressSequentially("made-77");
  await expect(page.getByRole("radio", { name: team.name })).toBeChecked();
  await page.getByLabel("Training name").fill("a1");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await expect(page.getByText("step 2 of 2")).toBeVisible();
});
