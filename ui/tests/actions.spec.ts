// STOP, RUN and DELETE, from the pane and from the keyboard.
import { AxeBuilder } from "./axe";
import { expect, goTo, rowOf, test } from "./fixture";

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
