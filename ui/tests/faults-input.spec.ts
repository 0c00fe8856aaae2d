// Faults of what is typed and of what there is: wrong values, taken names, too many of a thing.
import { AxeBuilder } from "./axe";
import type { Frame } from "./between";
import { choose, expect, goTo, logIn, type Page, rowOf, test, UNANSWERED } from "./fixture";

test("a wrong name and a negative count at once (both told)", async ({ app: page }) => {
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

test("name of a project taken between typing and creating", async ({
  page,
  server,
  between,
  watch,
}) => {
  watch.expectFailure(/^\/api\/v1\/org-unit\/projects$/u, 409);
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

test("name taken between typing and creating (created once, never twice)", async ({
  page,
  server,
  between,
  team,
  watch,
}) => {
  watch.expectFailure(/^\/api\/v1\/workloads\/trainings$/u, 409, UNANSWERED);
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
