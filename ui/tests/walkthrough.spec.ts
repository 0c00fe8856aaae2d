// The published over-quota walk-through, step by step as printed, by a browser.
import { AxeBuilder } from "./axe";
import { choose, expect, type Locator, logIn, type Page, rowOf as row, test } from "./fixture";
import type { Server } from "./server";

async function project(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill(name);
  await sheet.getByLabel(/^GPU devices/u).fill("2");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(sheet).toBeHidden();
  await expect(page.getByRole("rowheader", { name })).toBeVisible();
}

interface Training {
  name: string;
  project: string;
  compute: string;
}

/** Steps 1 to 7 of the page: up to CONTINUE. */
async function stepOne(page: Page, { name, project: of }: Training): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name: "Workloads" }).click();
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  await choose(page.getByRole("radio", { name: of }));
  await choose(page.getByRole("radio", { name: "Start from scratch" }));
  await page.getByLabel("Training name").fill(name);
  await page.getByRole("button", { name: "CONTINUE" }).click();
}

async function newEnvironment(page: Page): Promise<void> {
  await page.getByRole("button", { name: "+NEW ENVIRONMENT" }).click();
  const sheet = page.getByRole("dialog", { name: "New environment" });
  await sheet.getByLabel("Name", { exact: true }).fill("quickstart");
  await sheet.getByLabel("Image URL").fill("runai.jfrog.io/demo/quickstart");
  await sheet.getByRole("button", { name: "CREATE ENVIRONMENT" }).click();
  await expect(sheet).toBeHidden();
  // The newly created environment is selected.
  await expect(page.getByRole("radio", { name: /^quickstart/u })).toBeChecked();
}

async function newCompute(page: Page, name: string, devices: string): Promise<void> {
  await page.getByRole("button", { name: "+NEW COMPUTE RESOURCE" }).click();
  const sheet = page.getByRole("dialog", { name: "New compute resource" });
  await sheet.getByLabel("Name", { exact: true }).fill(name);
  await sheet.getByLabel("GPU devices per pod").fill(devices);
  await expect(sheet.getByRole("button", { name: "% (of device)" })).toBeVisible();
  await sheet.getByLabel("Request").fill("100");
  await sheet.getByRole("button", { name: "CREATE COMPUTE RESOURCE" }).click();
  await expect(sheet).toBeHidden();
  await expect(page.getByRole("radio", { name: new RegExp(`^${name}`, "u") })).toBeChecked();
}

async function create(page: Page, { name, compute }: Training): Promise<void> {
  await choose(page.getByRole("radio", { name: /^quickstart/u }));
  await choose(page.getByRole("radio", { name: new RegExp(`^${compute}`, "u") }));
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  // It is added to the table, and its pane is open.
  await expect(page.getByRole("region", { name: `Workload ${name}` })).toBeVisible();
  await page.getByRole("button", { name: "Close the pane" }).click();
  await expect(row(page, name)).toContainText("Running");
}

/**
 * Every step up to the preemption of a1, with its cause; the compute resources are made where there
 * are none. Returns the pane of a1.
 */
async function toPreemption(page: Page, own: Server, hasSamples: boolean): Promise<Locator> {
  await logIn(page, own);
  await page.getByRole("navigation").getByRole("link", { name: "Projects" }).click();
  await project(page, "team-a");
  await project(page, "team-b");

  const a2 = { name: "a2", project: "team-a", compute: "two-gpus" };
  const a1 = { name: "a1", project: "team-a", compute: "one-gpu" };
  await stepOne(page, a2);
  // An environment of inferences is none of a training.
  await expect(page.getByRole("radio", { name: /^jupyter-lab/u })).toBeVisible();
  await expect(page.getByRole("radio", { name: /^llm-server/u })).toHaveCount(0);
  await newEnvironment(page);
  if (!hasSamples) {
    await newCompute(page, "one-gpu", "1");
    await newCompute(page, "two-gpus", "2");
  }
  await create(page, a2);
  await stepOne(page, a1);
  await create(page, a1);
  await stepOne(page, { name: "b1", project: "team-b", compute: "one-gpu" });
  await create(page, { name: "b1", project: "team-b", compute: "one-gpu" });

  // Over quota: a1 is the third GPU of team-a.
  await expect(row(page, "a1")).toContainText("over quota");
  await expect(row(page, "a2")).toContainText("2 / 2");

  await stepOne(page, { name: "b2", project: "team-b", compute: "one-gpu" });
  await create(page, { name: "b2", project: "team-b", compute: "one-gpu" });
  // Without a reload: a1 is preempted, and says why.
  await expect(row(page, "a1")).toContainText("Pending");
  await expect(row(page, "a1")).toContainText("E101");
  await row(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await expect(pane.getByRole("tab", { name: "Explain" })).toHaveAttribute("aria-selected", "true");
  // The cause, with a link to the beneficiary, and changes that would help.
  await expect(pane.getByText("E101").first()).toBeVisible();
  await expect(pane).toContainText("team-a held 3 GPUs (quota 2");
  await expect(pane.getByText("For team-b/b2").getByRole("link")).toHaveText("team-b/b2");
  await expect(pane.getByRole("heading", { name: "What would let it start" })).toBeVisible();
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await pane.getByRole("tab", { name: "Event history" }).click();
  const stopped = pane.getByRole("listitem").filter({ hasText: "E101" });
  await expect(stopped.getByRole("link", { name: "team-b/b2" })).toBeVisible();
  // The code leads to its page, and that to those of other codes.
  await stopped.getByRole("link", { name: "E101" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("E101");
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await page.goBack();
  await pane.getByRole("tab", { name: "Explain" }).click();
  return pane;
}

test("over quota, then fairness by preemption, as printed, without the samples", async ({
  page,
  own,
}) => {
  await own.deleteSamples();
  await toPreemption(page, own, false);
});

test("over quota, then fairness by preemption, as printed", async ({ page, own }) => {
  const pane = await toPreemption(page, own, true);
  await pane.getByRole("tab", { name: "Event history" }).click();
  await expect(pane.getByRole("listitem").filter({ hasText: "E101" })).toBeVisible();
  await pane.getByRole("tab", { name: "Pods" }).click();
  await expect(pane).toContainText("a1-0-1");
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane).toContainText("runai.jfrog.io/demo/quickstart");

  // What the explanation names is a link: to who holds the GPUs, and back.
  await pane.getByRole("tab", { name: "Explain" }).click();
  await pane.getByRole("link", { name: "team-b/b1", exact: true }).first().click();
  await expect(page.getByRole("region", { name: "Workload b1" })).toBeVisible();
  await row(page, "a1").click();
  await pane.getByRole("link", { name: "node-1", exact: true }).first().click();
  await expect(page.getByRole("listitem").filter({ hasText: "node-1" })).toHaveAttribute(
    "aria-current",
    "true",
  );
  expect(await new AxeBuilder(page).violations()).toEqual([]);

  // A name that is taken is refused while it is typed.
  await stepOne(page, { name: "b2", project: "team-b", compute: "one-gpu" });
  await expect(page.getByText("the name is taken in team-b")).toBeVisible();
});
