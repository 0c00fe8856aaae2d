// The page of nodes with many of them: search and filter in the address, GPUs drawn when near.
import { AxeBuilder } from "./axe";
import type { Between, Frame } from "./between";
import { expect, goTo, logIn, type Page, test } from "./fixture";

const NODES = 1000;
const GPUS = 8;
/** The nodes of the server itself. */
const OWN = 2;
const GPU = /^GPU \d: /u;

/** Copies of the first node and GPU, before the list is complete. Two workloads share each node. */
function many(): (frame: Frame) => Frame[] {
  const first: Record<string, Frame> = {};
  return (frame) => {
    if (frame.type === "changed" && frame.kind) first[frame.kind] ??= frame;
    const { node, gpu } = first;
    if (frame.type !== "synced" || !node || !gpu) return [frame];
    const made: Frame[] = [];
    for (let n = 0; n < NODES; n += 1) {
      const name = `many-${String(n).padStart(4, "0")}`;
      const status = n % 10 === 0 ? "NotReady" : "Ready";
      made.push({ ...node, id: name, object: { ...node.object, id: name, name, status } });
      for (let index = 0; index < GPUS; index += 1) {
        const id = `${name}-${index}`;
        const workload = `${name}-w${index % 2}`;
        const names = { workloadId: workload, workloadName: workload, projectId: "many" };
        const pods = [{ id, name: id, share: 1, ...names }];
        const object = { ...gpu.object, id, nodeName: name, index, allocated: 1, pods };
        made.push({ ...gpu, id, object });
      }
    }
    return [...made, frame];
  };
}

const tile = (page: Page, name: string) =>
  page
    .getByRole("main")
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name, exact: true }) });
const gpusOf = (page: Page, name: string) => tile(page, name).getByRole("button", { name: GPU });
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

async function open(page: Page, server: Parameters<typeof logIn>[1], between: Between) {
  between.rewrite = many();
  await logIn(page, server, between);
  await goTo(page, "Nodes");
  await expect(gpusOf(page, "many-0000")).toHaveCount(GPUS);
}

test("1,000 nodes with 8 GPUs each are searched and filtered, and drawn when they are near", async ({
  page,
  server,
  between,
}) => {
  await open(page, server, between);
  const count = page.getByRole("search");
  await expect(count).toContainText(`${NODES + OWN} in all`);
  await expect(page.getByText(`of ${NODES * GPUS + 4} GPUs free`)).toBeVisible();
  const drawn = await page.getByRole("button", { name: GPU }).count();
  expect(drawn).toBeLessThan((NODES * GPUS) / 4);
  // GPUs that are far below are drawn once they are near.
  await expect(gpusOf(page, "many-0999")).toHaveCount(0);
  await tile(page, "many-0999").scrollIntoViewIfNeeded();
  await expect(gpusOf(page, "many-0999")).toHaveCount(GPUS);

  await page.getByRole("button", { name: "Filter by Status" }).click();
  await page.getByRole("menuitem", { name: "NotReady" }).click();
  await expect(count).toContainText(`${NODES / 10} of ${NODES + OWN}`);
  await page.getByRole("searchbox", { name: "Search Nodes" }).fill("many-001");
  await expect(count).toContainText(`1 of ${NODES + OWN}`);
  await expect(gpusOf(page, "many-0010")).toHaveCount(GPUS);
  await page.reload();
  await expect(gpusOf(page, "many-0010")).toHaveCount(GPUS);
  await expect(tile(page, "many-0011")).toBeHidden();
  await page.getByRole("searchbox", { name: "Search Nodes" }).fill("nothing");
  await expect(page.getByText("The search “nothing” hides 100 of 1002 nodes.")).toBeVisible();
  await page.getByRole("button", { name: "Clear all" }).click();
  await expect(count).toContainText(`${NODES + OWN} in all`);
  await page.getByRole("button", { name: "Filter by Status" }).click();
  await page.getByRole("menuitem", { name: "Not for new workloads" }).click();
  const sentence = "Status Not for new workloads hides 1002 of 1002 nodes.";
  await expect(page.getByText(sentence)).toBeVisible();
  await page.getByRole("button", { name: "Remove it" }).click();
  await expect(count).toContainText(`${NODES + OWN} in all`);
});

for (const [name, viewport, dir] of [
  ["a phone", { width: 320, height: 640 }, "ltr"],
  ["a phone, right to left", { width: 320, height: 640 }, "rtl"],
  ["4K", { width: 3840, height: 2160 }, "ltr"],
] as const) {
  test(`nodes that are far take the place of their GPUs before these are drawn: ${name}`, async ({
    page,
    server,
    between,
  }) => {
    await page.setViewportSize(viewport);
    await page.addInitScript((direction) => {
      addEventListener("DOMContentLoaded", () => (document.documentElement.dir = direction));
    }, dir);
    between.rewrite = many();
    // The navigation is a drawer on a phone.
    await logIn(page, server, between);
    await page.goto(new URL("/nodes", page.url()).href);
    await expect(gpusOf(page, "many-0000")).toHaveCount(GPUS);
    expect(await overflow(page)).toBe(0);
    for (const far of ["many-0500", "many-0999"]) {
      await expect(gpusOf(page, far)).toHaveCount(0);
      const height = () => tile(page, far).evaluate((one) => one.getBoundingClientRect().height);
      const before = await height();
      await tile(page, far).scrollIntoViewIfNeeded();
      await expect(gpusOf(page, far)).toHaveCount(GPUS);
      await expect(tile(page, far).getByRole("link", { name: `${far}-w1` })).toBeVisible();
      expect(await height()).toBe(before);
    }
    expect(await overflow(page)).toBe(0);
  });
}

test("no violation among filtered nodes", async ({ page, server, between }) => {
  await open(page, server, between);
  await page.getByRole("searchbox", { name: "Search Nodes" }).fill("many-001");
  await expect(page.getByRole("search")).toContainText(`10 of ${NODES + OWN}`);
  expect(await new AxeBuilder(page).violations()).toEqual([]);
});
