// What a reader asks of the system: less motion, more contrast.
import { expect, goTo, type Page, rowOf, test } from "./fixture";

/** The fade of the cell of the status after a workload was stopped. */
async function fade(page: Page, name: string): Promise<string> {
  const cell = rowOf(page, name).getByRole("gridcell").filter({ hasText: "Stopped" });
  await expect(cell).toHaveAttribute("data-changed", /./u);
  return cell.evaluate((element) => {
    const { animationName, animationDuration } = getComputedStyle(element, "::before");
    return `${animationName === "none" ? "none" : "fades"} ${animationDuration}`;
  });
}

test("a changed cell fades, and not with reduced motion", async ({ app: page, server, team }) => {
  const ids = [await server.submit(team.id, "a1"), await server.submit(team.id, "a2")];
  await goTo(page, "Workloads");
  for (const [at, motion] of (["no-preference", "reduce"] as const).entries()) {
    const name = `a${at + 1}`;
    await page.emulateMedia({ reducedMotion: motion });
    await expect(rowOf(page, name)).toContainText("Running");
    await server.api("POST", `/api/v1/workloads/trainings/${ids[at]}/suspend`);
    await expect(rowOf(page, name)).toContainText("Stopped");
    expect(await fade(page, name)).toMatch(motion === "reduce" ? /^none/u : /^fades 0.6s$/u);
  }
});

test("more contrast: no grey text, and lines as dark as the text", async ({ app: page }) => {
  const colors = () =>
    page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      return ["--text", "--muted", "--line"].map((name) => style.getPropertyValue(name));
    });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, contrast: "no-preference" });
    expect(new Set(await colors()).size).toBe(3);
    await page.emulateMedia({ contrast: "more" });
    expect(new Set(await colors()).size).toBe(1);
  }
});
