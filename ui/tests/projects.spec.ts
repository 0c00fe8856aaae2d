// The form of a project where there are several node pools.
import { expect, goTo, logIn, rowOf, test } from "./fixture";

test("a project has a quota in each node pool", async ({ page, own }) => {
  const { nodepools } = await own.api<{ nodepools: { clusterId: string }[] }>(
    "GET",
    "/api/v1/node-pools",
  );
  const clusterId = nodepools[0]?.clusterId;
  const body = { name: "a100", clusterId, labelKey: "gpu", labelValue: "a100" };
  await own.api("POST", "/api/v1/node-pools", body);
  await logIn(page, own);
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).first().click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill("team-a");
  await sheet.getByLabel("GPU devices (quota in default)").fill("2");
  await sheet.getByLabel("GPU devices (quota in a100)").fill("-1");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(sheet.getByText("0 or more")).toHaveCount(1);
  await expect(sheet.getByLabel("GPU devices (quota in a100)")).toBeFocused();
  await sheet.getByLabel("GPU devices (quota in a100)").fill("1");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(rowOf(page, "team-a")).toContainText("3");
  const { projects } = await own.api<{
    projects: { resources: { nodePool: { name: string }; gpu: { deserved: number } }[] }[];
  }>("GET", "/api/v1/org-unit/projects");
  const quotas = projects[0]?.resources.map(({ nodePool, gpu }) => [nodePool.name, gpu.deserved]);
  expect(Object.fromEntries(quotas ?? [])).toEqual({ default: 2, a100: 1 });
});
