// `make ui-shots`: a picture of every page, light, dark and on a phone, into `shots/`. Not a test.
import { expect, goTo, logIn, type Page, rowOf, test } from "../tests/fixture";
import { Server } from "../tests/server";

const LOOKS = [
  { name: "light", colorScheme: "light", size: { width: 1440, height: 900 } },
  { name: "dark", colorScheme: "dark", size: { width: 1440, height: 900 } },
  { name: "phone", colorScheme: "light", size: { width: 390, height: 844 } },
] as const;

let server: Server;

/** Two teams over and under their quotas, one workload that waits and one that was stopped for another. */
test.beforeAll(async () => {
  server = await Server.start();
  const a = await server.project("team-a");
  const b = await server.project("team-b");
  await server.project("vision-research");
  await server.asset("environment", "quickstart", { image: "runai.jfrog.io/demo/quickstart" });
  await server.asset("environment", "pytorch", { image: "nvcr.io/nvidia/pytorch:25.09-py3" });
  for (const name of ["a2", "a1", "bert-large-finetune"]) await server.submit(a, name);
  await server.submit(b, "b1");
  await server.submit(b, "b2");
  for (let n = 0; n < 24; n += 1) await server.submit(n % 3 ? a : b, `sweep-lr-${n}`);
});

test.afterAll(() => server.down());

async function take(page: Page, file: string): Promise<void> {
  await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
  await page.screenshot({ path: `shots/${file}.png`, animations: "disabled" });
}

async function pick(page: Page, name: string, open: () => Promise<void>): Promise<void> {
  await open();
  await take(page, `${test.info().title}-${name}`);
}

for (const { name, colorScheme, size } of LOOKS) {
  test(name, async ({ page }) => {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize(size);
    const to = async (place: string) => {
      const menu = page.getByRole("button", { name: "Menu" });
      if (await menu.isVisible()) await menu.click();
      await goTo(page, place);
    };
    await page.goto(`${server.url}/overview`);
    await pick(page, "login", () => expect(page.getByLabel("User")).toBeVisible());
    await logIn(page, server);
    await pick(page, "overview", () => expect(page.getByText("Who has what")).toBeVisible());
    await to("Workloads");
    await pick(page, "workloads", () => expect(rowOf(page, "sweep-lr-23")).toBeVisible());
    await page.goto(`${server.url}/workloads?q=bert`);
    await rowOf(page, "bert-large-finetune").click();
    const pane = page.getByRole("region", { name: /^Workload/u });
    for (const tab of ["Explain", "Event history", "Pods", "Details"]) {
      await pick(page, `pane-${tab.toLowerCase().replace(" ", "-")}`, async () => {
        await pane.getByRole("tab", { name: tab }).click();
        await expect(pane.getByRole("tabpanel")).not.toBeEmpty();
        await expect(pane.locator("[aria-hidden=true][style*=grid]")).toHaveCount(0);
      });
    }
    await pick(page, "stop", () => pane.getByRole("button", { name: /STOP|RUN/u }).click());
    await page.keyboard.press("Escape");
    await page.goto(`${server.url}/workloads?sort=name`);
    await rowOf(page, "b2").getByRole("rowheader").focus();
    await pick(page, "picked", async () => {
      for (const key of ["x", "Shift+ArrowDown", "Shift+ArrowDown"]) await page.keyboard.press(key);
      await expect(page.getByRole("toolbar")).toBeVisible();
    });
    await page.goto(`${server.url}/workloads`);
    await pick(page, "filter", () =>
      page.getByRole("button", { name: "Filter by Status" }).click(),
    );
    await page.goto(`${server.url}/workloads?q=nothing`);
    await pick(page, "nothing-matches", () =>
      expect(page.getByText("Nothing matches")).toBeVisible(),
    );
    await page.goto(`${server.url}/workloads/new/training`);
    await pick(page, "training-1", async () => {
      await page.getByRole("radio", { name: /^team-a/u }).check();
      await page.getByLabel("Training name").fill("a1");
    });
    await pick(page, "training-2", async () => {
      await page.getByLabel("Training name").fill("a3");
      await page.getByRole("button", { name: "CONTINUE" }).click();
    });
    await to("Environments");
    await pick(page, "environments", () => expect(rowOf(page, "pytorch")).toBeVisible());
    await to("Compute resources");
    await pick(page, "compute", () => expect(rowOf(page, "one-gpu")).toBeVisible());
    await pick(page, "compute-form", () =>
      page.getByRole("button", { name: "+NEW COMPUTE RESOURCE" }).click(),
    );
    await page.keyboard.press("Escape");
    await to("Nodes");
    await pick(page, "nodes", () => expect(page.getByText("node-2")).toBeVisible());
    await to("Projects");
    await pick(page, "projects", () => expect(rowOf(page, "team-b")).toBeVisible());
    await pick(page, "project-form", async () => {
      await page.getByRole("button", { name: "+NEW PROJECT" }).click();
      await page.getByRole("button", { name: "CREATE PROJECT" }).click();
    });
    await page.keyboard.press("Escape");
    await pick(page, "menu", () => page.getByRole("button", { name: /^Account of/u }).click());
    await pick(page, "keys", () => page.getByRole("menuitem", { name: "Keys" }).click());
  });
}

// Those of the README: the over-quota walk-through at a preemption, and lending.
test("interface", async ({ page }) => {
  const own = await Server.start();
  const [a, b] = [await own.project("team-a"), await own.project("team-b")];
  for (const name of ["a2", "a1", "a3"]) await own.submit(a, name);
  await own.submit(b, "b1");
  const b2 = await own.submit(b, "b2");
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize({ width: 1280, height: 720 });
  await logIn(page, own);
  await goTo(page, "Workloads");
  await expect(page.getByRole("row").filter({ hasText: "E101" })).toHaveCount(1);
  await page.getByRole("row").filter({ hasText: "E101" }).click();
  await expect(page.getByText("What would let it start")).toBeVisible();
  await take(page, "interface-workloads");
  // Lent again, and wanted by one more.
  await own.api("POST", `/api/v1/workloads/trainings/${b2}/suspend`);
  await own.submit(a, "a4");
  await goTo(page, "Overview");
  await expect(page.getByText("Why 1 waits")).toBeVisible();
  await expect(page.getByText("1 borrowed")).toBeVisible();
  await page.setViewportSize({ width: 1280, height: 520 });
  await take(page, "interface-overview");
  // Its requests would fail from here on.
  await page.close();
  await own.down();
});
