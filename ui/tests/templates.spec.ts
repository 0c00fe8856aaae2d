// Templates in the form of a new training: what one fills is shown and can be changed.
import { AxeBuilder } from "./axe";
import { choose, expect, goTo, type Page, rowOf, test } from "./fixture";

const IMAGE = "runai.jfrog.io/demo/quickstart";
const SPEC = {
  image: IMAGE,
  command: "sleep",
  args: "600",
  compute: { gpuDevicesRequest: 1 },
  environmentVariables: [{ name: "MODE", value: "fast" }],
};

async function begin(page: Page, project: string): Promise<void> {
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  await choose(page.getByRole("radio", { name: new RegExp(`^${project} `, "u") }));
}

test("a template fills the form, what it fills can be changed, and the workload knows it", async ({
  app: page,
  server,
  team,
}) => {
  await server.template(`t-${team.name}`, SPEC);
  await begin(page, team.name);
  await choose(page.getByRole("radio", { name: `t-${team.name}` }));
  await page.getByLabel("Training name").fill("a1");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  const asInTemplate = page.getByRole("radio", { name: "As in the template" });
  await expect(asInTemplate).toHaveCount(2);
  await expect(asInTemplate.first()).toBeChecked();
  await expect(asInTemplate.last()).toBeChecked();
  await expect(page.getByText(`As in the template${IMAGE}`)).toBeVisible();
  await expect(page.getByLabel("Command")).toHaveValue("sleep");
  await expect(page.getByLabel("Command")).toHaveAccessibleDescription(/that of the template/u);
  await expect(page.getByLabel("Arguments")).toHaveValue("600");
  await expect(page.getByText("MODE=fast")).toBeVisible();
  expect(await new AxeBuilder(page).violations()).toEqual([]);

  await page.getByLabel("Arguments").fill("900");
  await choose(page.getByRole("radio", { name: "cpu-only" }));
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane).toContainText(`t-${team.name}`);
  await expect(pane).toContainText("MODE=fast");
  await expect(pane).toContainText("0 requested");
  const { workloads } = await server.api<{ workloads: { command: string; arguments: string }[] }>(
    "GET",
    `/api/v1/workloads?filterBy=${encodeURIComponent(`projectId==${team.id}`)}`,
  );
  expect(workloads).toMatchObject([{ command: "sleep", arguments: "900" }]);
});

test("a template of one project is offered in that project alone", async ({
  app: page,
  server,
  team,
}) => {
  const other = `${team.name}-b`;
  await server.project(other);
  await server.template(`t-${team.name}`, SPEC, team.id);
  await begin(page, team.name);
  const tile = page.getByRole("radio", { name: `t-${team.name}` });
  await choose(tile);
  // The form says that a template of one project cannot be used in another.
  await choose(page.getByRole("radio", { name: new RegExp(`^${other} `, "u") }));
  await expect(tile).toHaveCount(0);
  await expect(page.getByText(/was deleted, or is not for this project/u)).toBeVisible();
  await page.getByLabel("Training name").fill("a1");
  // The chosen tile is gone, and Tab still leads to those that are left.
  const scratch = page.getByRole("radio", { name: "Start from scratch" });
  await page.keyboard.press("Shift+Tab");
  await expect(page.getByRole("radiogroup", { name: "Template" }).locator(":focus")).toBeVisible();
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await expect(page.getByText("step 1 of 2")).toBeVisible();
  await expect(scratch).toBeFocused();
  await choose(scratch);
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await expect(page.getByText("step 2 of 2")).toBeVisible();
  await expect(page.getByRole("radio", { name: "As in the template" })).toHaveCount(0);
});

test("the form says that the chosen template was deleted, and keeps what was typed", async ({
  app: page,
  server,
  team,
}) => {
  await server.asset("environment", `e-${team.name}`, { image: IMAGE });
  const id = await server.template(`t-${team.name}`, SPEC);
  await begin(page, team.name);
  await choose(page.getByRole("radio", { name: `t-${team.name}` }));
  await page.getByLabel("Training name").fill("a1");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await page.getByLabel("Arguments").fill("900");
  await server.deleteTemplate(id);
  const told = page.getByRole("alert");
  await expect(told).toContainText(`Template t-${team.name} was deleted`);
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  await expect(page.getByText("step 2 of 2")).toBeVisible();
  await told.getByRole("button", { name: "START FROM SCRATCH" }).click();
  await expect(told).toBeHidden();
  await expect(page.getByLabel("Command")).toHaveValue("sleep");
  await expect(page.getByLabel("Arguments")).toHaveValue("900");
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  await expect(page.getByText("choose an environment")).toBeVisible();
  await choose(page.getByRole("radio", { name: `e-${team.name}` }));
  await choose(page.getByRole("radio", { name: "cpu-only" }));
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  await expect(rowOf(page, "a1")).toContainText("Running");
});

test("the form says that the chosen environment was deleted, before it is sent", async ({
  app: page,
  server,
  team,
}) => {
  const id = await server.asset("environment", `e-${team.name}`, { image: IMAGE });
  await begin(page, team.name);
  await page.getByLabel("Training name").fill("a1");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await choose(page.getByRole("radio", { name: `e-${team.name}` }));
  await server.api("DELETE", `/api/v1/asset/environment/${id}`);
  await expect(page.getByText("what was chosen is not there any more")).toBeVisible();
});
