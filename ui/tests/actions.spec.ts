// STOP, RUN and DELETE, from the pane and from the keyboard.
import { AxeBuilder } from "./axe";
import { expect, goTo, logIn, rowOf, test } from "./fixture";

test("a workload is stopped, run again and deleted", async ({ app: page, server, team, watch }) => {
  // The pane may ask for what the server has deleted already.
  watch.allowFailure(/\/workloads\/[^/]+(\/explain)?$/u, 404);
  await server.submit(team.id, "a1");
  await goTo(page, "Workloads");
  const row = rowOf(page, "a1");
  await expect(row).toContainText("Running");
  await row.click();
  const pane = page.getByRole("region", { name: "Workload a1" });

  await pane.getByRole("button", { name: "STOP" }).click();
  const stop = page.getByRole("alertdialog", { name: `Stop a1 of ${team.name}` });
  await expect(stop).toContainText("It holds 1 GPU.");
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await stop.getByRole("button", { name: "STOP" }).click();
  await expect(stop).toBeHidden();
  await expect(row).toContainText("Stopped");

  await pane.getByRole("button", { name: "RUN" }).click();
  const run = page.getByRole("alertdialog", { name: `Run a1 of ${team.name}` });
  await run.getByRole("button", { name: "RUN" }).click();
  await expect(row).toContainText("Running");

  // From the keyboard: the key asks, Escape takes it back, Enter on the button does it.
  await row.getByRole("rowheader").focus();
  await page.keyboard.press("Delete");
  const remove = page.getByRole("alertdialog", { name: `Delete a1 of ${team.name}` });
  await expect(remove).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(remove).toBeHidden();
  await expect(row.getByRole("rowheader")).toBeFocused();
  await page.keyboard.press("Delete");
  await expect(remove.getByRole("button", { name: "DELETE" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(remove).toBeHidden();
  // Its pane stays, and says that it is gone.
  await expect(pane).toContainText("was deleted");
  await expect(pane.getByRole("button", { name: "STOP" })).toBeHidden();
});

test("a workload that is run again without room says why it waits", async ({ page, own }) => {
  const project = await own.project("team-a");
  const compute = { gpuDevicesRequest: 2 };
  const id = await own.submit(project, "first", { compute });
  await own.submit(project, "beside", { compute });
  await logIn(page, own);
  await goTo(page, "Workloads");
  await expect(rowOf(page, "first")).toContainText("Running");
  await own.api("POST", `/api/v1/workloads/trainings/${id}/suspend`);
  await expect(rowOf(page, "first")).toContainText("Stopped");
  await own.submit(project, "second", { compute });
  await expect(rowOf(page, "second")).toContainText("Running");
  await own.api("POST", `/api/v1/workloads/trainings/${id}/resume`);
  await expect(rowOf(page, "first")).toContainText("P102");
  await rowOf(page, "first").click();
  const pane = page.getByRole("region", { name: "Workload first" });
  await expect(pane.getByRole("tab", { name: "Explain" })).toHaveAttribute("aria-selected", "true");
  await goTo(page, "Overview");
  await expect(page.getByRole("heading", { name: "Why 1 waits" })).toBeVisible();
  await page.getByRole("link", { name: "Pending workloads" }).click();
  await expect(rowOf(page, "first")).toBeVisible();
  await expect(rowOf(page, "second")).toBeHidden();
});
