// Rights by scope: a role in one project shows no action on what is in others.
import { choose, expect, goTo, logInAs, rowOf, test } from "./fixture";

test("a role in one project: nothing of another is offered", async ({ page, server, team }) => {
  const other = `${team.name}-b`;
  const otherId = await server.project(other);
  await server.submit(team.id, "in-a");
  await server.submit(otherId, "in-b");
  await server.asset("environment", `env-${team.name}`, {
    image: "runai.jfrog.io/demo/quickstart",
  });
  const user = `${team.name}@example.com`;
  const password = await server.user(user);
  await server.give(user, "Viewer");
  await server.give(user, "Editor", team.id);
  await logInAs(page, `${server.url}/workloads?q=${team.name}`, user, password);

  const paneOf = async (name: string) => {
    await rowOf(page, name).click();
    return page.getByRole("region", { name: `Workload ${name}` });
  };
  const buttons = ["STOP", "RUN", "DELETE"].map((name) => page.getByRole("button", { name }));
  const ours = await paneOf("in-a");
  await expect(ours.getByRole("button", { name: "STOP" })).toBeVisible();
  await expect(ours.getByRole("button", { name: "DELETE" })).toBeVisible();
  await expect(await paneOf("in-b")).toBeVisible();
  for (const button of buttons) await expect(button).toHaveCount(0);

  // Keys ask only where the action is allowed.
  await rowOf(page, "in-b").getByRole("rowheader").focus();
  await page.keyboard.press("Delete");
  await page.keyboard.press("s");
  await expect(page.getByRole("alertdialog")).toHaveCount(0);
  await page.keyboard.press("Escape");
  await rowOf(page, "in-a").getByRole("rowheader").focus();
  await page.keyboard.press("s");
  await expect(page.getByRole("alertdialog", { name: `Stop in-a of ${team.name}` })).toBeVisible();
  await page.keyboard.press("Escape");

  // Of those that are picked only the allowed ones are acted on.
  const bar = page.getByRole("toolbar");
  await rowOf(page, "in-b").click({ modifiers: ["Control"] });
  await expect(bar).toContainText("1 of 2 picked");
  for (const button of buttons) await expect(button).toHaveCount(0);
  await rowOf(page, "in-a").click({ modifiers: ["Control"] });
  await bar.getByRole("button", { name: "DELETE" }).click();
  const ask = page.getByRole("alertdialog", { name: "Delete 1 workload" });
  await expect(ask).toContainText("in-a");
  await expect(ask).toContainText("Left as before: 1 other");
  await page.keyboard.press("Escape");

  // A project is made in a department, an environment in the project of the role.
  await goTo(page, "Projects");
  await expect(rowOf(page, other)).toBeVisible();
  await expect(page.getByRole("button", { name: "+NEW PROJECT" })).toHaveCount(0);
  await goTo(page, "Environments");
  await page.getByRole("button", { name: "+NEW ENVIRONMENT" }).click();
  await page.getByRole("button", { name: /Scope/u }).click();
  await expect(page.getByRole("option")).toHaveText([`Project ${team.name}`]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "CANCEL" }).click();

  await page.goto(`${server.url}/workloads/new/training`);
  await expect(page.getByRole("radiogroup", { name: "Project" }).getByRole("radio")).toHaveCount(1);
  await choose(page.getByRole("radio", { name: team.name }));
  await page.getByLabel("Training name").fill("in-a-2");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await expect(page.getByRole("button", { name: "+NEW ENVIRONMENT" })).toBeVisible();
  await server.clear(otherId);
});

test("a role for one's own: what others made is shown without actions", async ({
  page,
  server,
  team,
}) => {
  const user = `${team.name}@example.com`;
  const password = await server.user(user);
  await server.give(user, "L2 researcher", team.id);
  await server.submit(team.id, "of-root");
  await server.asset("environment", `env-${team.name}`, {
    image: "runai.jfrog.io/demo/quickstart",
  });
  await logInAs(page, `${server.url}/workloads/new/training`, user, password);
  await choose(page.getByRole("radio", { name: team.name }));
  await page.getByLabel("Training name").fill("of-ann");
  await page.getByRole("button", { name: "CONTINUE" }).click();
  await choose(page.getByRole("radio", { name: `env-${team.name}` }));
  await choose(page.getByRole("radio", { name: "cpu-only" }));
  await page.getByRole("button", { name: "CREATE TRAINING" }).click();
  const own = page.getByRole("region", { name: "Workload of-ann" });
  await expect(own.getByRole("button", { name: "DELETE" })).toBeVisible();
  await rowOf(page, "of-root").click();
  const others = page.getByRole("region", { name: "Workload of-root" });
  await expect(others.getByRole("tab", { name: "Details" })).toBeVisible();
  await expect(others.getByRole("button", { name: "DELETE" })).toHaveCount(0);
  await expect(others.getByRole("button", { name: "STOP" })).toHaveCount(0);
});

test("a role in one department: assets and projects are made in it, and not for the cluster", async ({
  page,
  server,
  team,
}) => {
  const user = `${team.name}@example.com`;
  const password = await server.user(user);
  const made = { name: `dep-${team.name}`, resources: [] };
  const { id } = await server.api<{ id: string }>("POST", "/api/v1/org-unit/departments", made);
  await server.give(user, "Department administrator", { scopeType: "department", scopeId: id });
  await logInAs(page, `${server.url}/assets/environments`, user, password);
  await page.getByRole("button", { name: "+NEW ENVIRONMENT" }).click();
  const sheet = page.getByRole("dialog", { name: "New environment" });
  await sheet.getByRole("button", { name: /Scope/u }).click();
  await expect(page.getByRole("option")).toHaveText([`Department ${made.name}`]);
  await page.keyboard.press("Enter");
  await sheet.getByLabel("Name", { exact: true }).fill(`env-${made.name}`);
  await sheet.getByLabel("Image URL").fill("runai.jfrog.io/demo/quickstart");
  await sheet.getByRole("button", { name: "CREATE ENVIRONMENT" }).click();
  await expect(rowOf(page, `env-${made.name}`)).toContainText("department");
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  await page.getByRole("button", { name: /Scope/u }).click();
  await expect(page.getByRole("option")).toHaveText([made.name]);
});
