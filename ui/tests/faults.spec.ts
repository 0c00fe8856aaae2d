// Faults: the server goes, the session ends, texts are hostile. Each test is named by its fault.
import { AxeBuilder } from "./axe";
import { expect, test, watch } from "./fixture";

test("server gone, and restarted", async ({ app: page, server }) => {
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  await server.stop();
  await expect(page.getByText("reconnecting")).toBeVisible();
  await expect(page.getByText(/^As of/u)).toBeVisible();
  // What was known stays on the page.
  await expect(page.getByText("Ready nodes")).toBeVisible();
  await server.start();
  // The session of the local administrator ended with the former start.
  const again = page.getByRole("dialog", { name: "Log in again" });
  await expect(again).toBeVisible({ timeout: 30_000 });
});

test("a link used twice", async ({ page, server }) => {
  const link = server.link();
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("once");
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  await expect(page.getByRole("alert")).toContainText("used");
});

test("a wrong name and a negative count at once", async ({ app: page }) => {
  await page.goto(page.url().replace("/overview", "/projects"));
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill("Team <script>");
  await sheet.getByLabel(/^GPU devices/u).fill("-2");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(sheet.getByText("beginning with a letter")).toBeVisible();
  await expect(sheet.getByText("0 or more")).toBeVisible();
  expect(await new AxeBuilder(page).violations()).toEqual([]);
});

test("no violation on any page, light, dark and on a phone", async ({ app: page }) => {
  const pages = ["Overview", "Workloads", "Environments", "Compute resources", "Nodes", "Projects"];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    for (const name of pages) {
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();
      expect([name, await new AxeBuilder(page).violations()]).toEqual([name, []]);
    }
  }
  await page.setViewportSize({ width: 320, height: 640 });
  const sideways = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(sideways).toBeLessThanOrEqual(320);
});

test("no SharedWorker, and storage refused", async ({ page, server }) => {
  await page.addInitScript(() => {
    Reflect.deleteProperty(globalThis, "SharedWorker");
    for (const storage of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(globalThis, storage, {
        get: () => {
          throw new DOMException("refused", "SecurityError");
        },
      });
    }
  });
  const faults = watch(page, server.url);
  await page.goto(server.link());
  await expect(page.getByText("live", { exact: true })).toBeVisible();
  // The stream is in a worker of this page alone.
  expect(page.workers()).toHaveLength(1);
  server.submit("team-a", "a1");
  await page.getByRole("navigation").getByRole("link", { name: "Workloads" }).click();
  await expect(page.getByRole("row").filter({ hasText: "a1" })).toContainText("Running");
  expect(faults).toEqual([]);
});

test("a workload deleted while its pane is open, by another", async ({ app: page, server }) => {
  server.submit("team-a", "a1");
  await page.getByRole("navigation").getByRole("link", { name: "Workloads" }).click();
  await page.getByRole("rowheader", { name: "a1" }).click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Details" }).click();
  server.remove("team-a", "a1");
  await expect(pane).toContainText("was deleted");
  await expect(pane.getByRole("button", { name: "DELETE" })).toBeHidden();
});
