// Values of Overview and Nodes with known workloads; the choice of a theme; the reader's zone.
import { expect, goTo, type Locator, logIn, type Page, rowOf, test } from "./fixture";
import type { Server } from "./server";

/** A tile of Overview: the name, the figure and the line below it. */
async function tile(page: Page, name: string, figure: string, detail: string): Promise<void> {
  const found = page.getByRole("listitem").filter({ has: page.getByRole("link", { name }) });
  await expect(found).toHaveText(`${name}${figure}${detail}`);
}

const section = (page: Page, name: RegExp): Locator =>
  page.locator("section").filter({ has: page.getByRole("heading", { name }) });

/** As in the published walk-through: team-a holds three GPUs of a quota of two, team-b one. */
async function overQuota(server: Server): Promise<{ a: string; b: string; a1: string }> {
  const a = await server.project("team-a");
  const b = await server.project("team-b");
  await server.submit(a, "a2", { compute: { gpuDevicesRequest: 2 } });
  const a1 = await server.submit(a, "a1");
  await server.submit(b, "b1");
  return { a, b, a1 };
}

test("Overview: tiles, bars, reasons of waiting workloads, and what just happened", async ({
  page,
  own,
}) => {
  const { a, b } = await overQuota(own);
  await logIn(page, own);
  await tile(page, "Ready nodes", "2 / 2", "all ready");
  await tile(page, "Allocated GPUs", "4 / 4", "0 free");
  await tile(page, "Running workloads", "3", "hold 4 GPUs");
  await tile(page, "Pending workloads", "0", "\u00A0");
  const bars = section(page, /^Who has what$/u);
  await expect(bars).toContainText("team-a3 of 2 GPUs · 1 borrowed");
  await expect(bars).toContainText("team-b1 of 2 GPUs");
  const bar = (label: string) => bars.getByRole("img", { name: label, exact: true });
  await expect(bar("3 of a quota of 2 GPUs, 1 borrowed, fair share 3")).toBeVisible();
  await expect(bar("1 of a quota of 2 GPUs, fair share 1")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Nothing waits" })).toBeVisible();
  const happened = section(page, /^Just happened$/u).getByRole("listitem");
  await expect(happened).toHaveCount(3);
  await expect(happened.filter({ hasText: "a2 of team-a" })).toContainText(
    /● Running .*2 GPUs on node-/u,
  );

  // Another workload of team-b is entitled to the borrowed GPU; and one is larger than the cluster.
  await own.submit(b, "b2");
  await own.submit(a, "a3", { compute: { gpuDevicesRequest: 64 } });
  await tile(page, "Running workloads", "3", "hold 4 GPUs");
  await tile(page, "Pending workloads", "2", "wait for 65 GPUs");
  await expect(bar("2 of a quota of 2 GPUs")).toHaveCount(2);
  await expect(bars).not.toContainText("1 borrowed");
  const reasons = section(page, /^Why 2 wait$/u).getByRole("listitem");
  await expect(reasons).toHaveCount(2);
  await expect(reasons.filter({ hasText: "P101" })).toContainText("1 workload, 64 GPUs");
  await expect(reasons.filter({ hasText: "P102" })).toContainText("1 workload, 1 GPU");
  const stopped = happened.filter({ hasText: "E101" });
  await expect(stopped).toHaveCount(1);
  await expect(stopped).toContainText("E101 a1 of team-a");
  await expect(stopped).toContainText("stopped so that team-b/b2 gets its quota");
  await expect(happened.filter({ hasText: "b2 of team-b" })).toContainText("● Running");

  // Names are links to their workloads.
  await stopped.getByRole("link", { name: "a1" }).click();
  await expect(page.getByRole("region", { name: "Workload a1" })).toBeVisible();
  await goTo(page, "Overview");
  await page.getByRole("link", { name: "Pending workloads" }).click();
  await expect(page.getByText("2 of 5")).toBeVisible();
});

/** A name as long as one may be. */
const long = (name: string): string => name.padEnd(49, "x");

test("Overview: the whole sentence of a stop, of which the row has the beginning", async ({
  page,
  own,
}) => {
  const [a, b] = [await own.project(long("a")), await own.project(long("b"))];
  const compute = { gpuDevicesRequest: 2 };
  await own.submit(a, "a1", { compute });
  await own.submit(a, long("a2"), { compute });
  await logIn(page, own);
  const lines = section(page, /^Just happened$/u).getByRole("listitem");
  await expect(lines.filter({ hasText: "Running" })).toHaveCount(2);
  await own.submit(b, long("b1"), { compute });
  const stopped = lines.filter({ hasText: "E101" });
  await expect(stopped).toContainText(`stopped so that ${long("b")}/${long("b1")} gets its quota`);
});

test("Overview: starts, ends, failures and stops appear as they happen, in lines that stay", async ({
  page,
  own,
}) => {
  await logIn(page, own);
  const card = section(page, /^Just happened$/u);
  await expect(card).toContainText("Nothing yet");
  const { height } = (await card.boundingBox()) ?? {};
  const project = await own.project("team-a");
  const lines = card.getByRole("listitem");
  const line = (name: string) => lines.filter({ hasText: `${name} of team-a` });
  const command = "sh";
  await own.submit(project, "ends", { command, args: "-c true" });
  await expect(line("ends")).toContainText("✓ Completed");
  await own.submit(project, "fails", { command, args: "-c 'exit 3'", backoffLimit: 0 });
  await expect(line("fails")).toContainText("✕ Failed");
  await expect(line("fails").locator("code")).toHaveText(/^[A-Z]\d{3}$/u);
  const id = await own.submit(project, "stops");
  await expect(line("stops")).toContainText(/● Running .*1 GPU on node-/u);
  await expect(lines.first()).toContainText("stops of team-a");
  // Under the pointer the list stays as it is: a link is not to move.
  await card.hover();
  await own.api("POST", `/api/v1/workloads/trainings/${id}/suspend`);
  await tile(page, "Running workloads", "0", "hold 0 GPUs");
  await expect(line("stops")).toContainText("● Running");
  await page.mouse.move(0, 0);
  await expect(line("stops")).toContainText("■ Stopped");
  await expect(lines).toHaveCount(3);
  expect((await card.boundingBox())?.height).toBe(height);
  // The rows have it also for a page that is opened later.
  await page.reload();
  await expect(lines).toHaveCount(3);
  await expect(line("ends")).toContainText("✓ Completed");
});

test("Nodes: which workloads hold how much of each GPU, and what is out of service", async ({
  page,
  own,
}) => {
  const { a } = await overQuota(own);
  await own.submit(a, "half", { compute: { gpuPortionRequest: 0.5, gpuRequestType: "portion" } });
  await logIn(page, own);
  await goTo(page, "Nodes");
  await expect(page.getByText("0 of 4 GPUs free")).toBeVisible();
  const node = (name: string) =>
    page
      .getByRole("main")
      .getByRole("listitem")
      .filter({ has: page.getByRole("heading", { name }) });
  await expect(node("node-1")).toContainText("Ready");
  for (const name of ["node-1", "node-2"]) {
    await expect(node(name)).toContainText("2 of 2 GPUs held");
    await expect(node(name).getByRole("button")).toHaveCount(2);
  }
  // a2 has a node of its own, a1 and b1 share the other one.
  const gpus = page.getByRole("main").getByRole("button", { name: /^GPU \d: / });
  const labels = async () =>
    (await gpus.evaluateAll((all) => all.map((gpu) => gpu.getAttribute("aria-label") ?? "")))
      .map((label) => label.replace(/^GPU \d: /u, ""))
      .toSorted((one, other) => (one < other ? -1 : 1));
  await expect.poll(labels).toEqual(["a1 1 GPU", "a2 1 GPU", "a2 1 GPU", "b1 1 GPU"]);
  const whole = node("node-1").or(node("node-2")).filter({ hasText: "a2" });
  await expect(whole.getByRole("link", { name: "a2" })).toBeVisible();
  await expect(whole).toContainText("a22 GPUs");
  await gpus.first().hover();
  await expect(page.getByRole("tooltip")).toHaveText(/^GPU 0: a\d 1 GPU$/u);

  // A GPU of a2 fails: it is out of service, and a2 leaves it.
  const broken = (await whole.getByRole("heading").textContent()) ?? "";
  await own.api("PUT", `/elastane/v1/nodes/${broken}/gpus/1/simulated-failure`);
  const out = node(broken).getByRole("button", { name: /^GPU 1: out of service, ./u });
  await expect(out).toBeVisible();
  await expect(out).toContainText("×");
  await expect(out.locator("span")).toHaveCount(0);
  await goTo(page, "Overview");
  await expect(page.getByText("× 1 out of service")).toBeVisible();
  await own.api("DELETE", `/elastane/v1/nodes/${broken}/gpus/1/simulated-failure`);
  await expect(page.getByText("out of service")).toBeHidden();
  await goTo(page, "Nodes");
  await expect(out).toBeHidden();
});

test("the theme follows the system, or is chosen, and is kept", async ({ app: page }) => {
  const root = page.locator("html");
  const choose = async (name: string) => {
    await page.getByRole("button", { name: /^Account of/u }).click();
    await page.getByRole("menuitem", { name }).click();
    await expect(page.getByRole("menu")).toBeHidden();
  };
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  await expect(root).toHaveAttribute("data-theme", "light");
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  await expect(root).toHaveAttribute("data-theme", "dark");
  expect(await ground()).not.toBe(light);
  await choose("Light theme");
  await expect(root).toHaveAttribute("data-theme", "light");
  expect(await ground()).toBe(light);
  await page.reload();
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await expect(root).toHaveAttribute("data-theme", "light");
  await page.emulateMedia({ colorScheme: "light" });
  await choose("Dark theme");
  await expect(root).toHaveAttribute("data-theme", "dark");
  await choose("System theme");
  await expect(root).toHaveAttribute("data-theme", "light");
});

test.describe("a reader in Kathmandu", () => {
  test.use({ timezoneId: "Asia/Kathmandu" });

  test("times are in the zone of the reader, and the exact one names it", async ({
    app: page,
    server,
    team,
  }) => {
    await server.submit(team.id, "a1");
    await page.goto(new URL(`/workloads?q=${team.name}&cols=name,createdAt`, page.url()).href);
    const cell = rowOf(page, "a1").getByRole("gridcell").getByRole("time");
    const made = new Date((await cell.getAttribute("datetime")) ?? "");
    // Nepal is 5 h 45 min ahead of UTC, all the year.
    const there = new Date(made.getTime() + (5 * 60 + 45) * 60_000);
    const clock = new Intl.DateTimeFormat("en-US", { timeStyle: "medium", timeZone: "UTC" });
    await expect(cell).toHaveText(clock.format(there));
    await rowOf(page, "a1").getByRole("rowheader").focus();
    await page.keyboard.press("ArrowRight");
    const day = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });
    await expect(page.getByRole("tooltip")).toHaveText(
      `${day.format(there)}, ${clock.format(there)} GMT+5:45`,
    );
    await page.keyboard.press("Enter");
    const pane = page.getByRole("region", { name: "Workload a1" });
    await pane.getByRole("tab", { name: "Event history" }).click();
    await expect(pane).toContainText("Times are in Nepal Time.");
  });
});
