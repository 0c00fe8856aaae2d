// `make bench ARGS="--only ui"`: costs of the page, beside a real server. Prints a line a number.
// The stream of 10,000 workloads is the real one with copies of a real row.
import { gzipSync } from "node:zlib";

import { Between, type Frame } from "../tests/between";
import { expect, logIn, type Page, rowOf, test } from "../tests/fixture";
import { Server } from "../tests/server";
import { debugPage, debugWorker, type Heap, heapOf } from "./heap";

const ROWS = 10_000;
const CHANGES_PER_S = 500;
const SECONDS = 10;
/** As in an hour at that rate. */
const MANY_CHANGES = Number(process.env.ELASTANE_UI_BENCH_CHANGES ?? 1_800_000);
const BATCH = 2000;
/** Preemptions that are measured. */
const ROUNDS = 5;
const CHANGE_ROUNDS = 6;

let server: Server;
let between: Between;
/** The rows as they were sent last. */
let rows: Frame[] = [];

test.setTimeout(120_000);
test.describe.configure({ mode: "serial" });

test.beforeAll(async () => {
  server = await Server.start();
  const team = await server.project("team-a");
  await server.submit(team, "w");
  between = await Between.open(server);
  between.rewrite = (frame) => {
    if (frame.kind !== "workload" || frame.type !== "changed") return [frame];
    const copies = Array.from({ length: ROWS }, (_, n) => copyOf(frame, n));
    rows = copies.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    return copies;
  };
});

test.afterAll(async () => {
  between.close();
  await server.down();
});

function copyOf(frame: Frame, number: number): Frame {
  const id = `copy-${number}`;
  const name = `w${String((number * 7919) % ROWS).padStart(5, "0")}`;
  const phase = number % 10 === 0 ? "Pending" : "Running";
  return { ...frame, id, object: { ...frame.object, id, name, phase, gpusAllocated: number % 9 } };
}

function nameOf({ object }: Frame): string {
  return String(object?.name);
}

function line(what: string, value: number, unit: string, goal?: string): void {
  const digits = value < 10 ? 2 : 1;
  const beside = goal ? `   goal ${goal}` : "";
  process.stdout.write(
    `${what.padEnd(52)} ${value.toFixed(digits).padStart(8)} ${unit}${beside}\n`,
  );
}

/** CPU seconds of the page's thread so far. */
async function meter(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  };
}

/** Opens Workloads with an empty cache, logged in. */
async function open(page: Page): Promise<void> {
  await page.goto(await server.link(between.url));
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  await page.goto(`${between.url}/workloads?sort=name`);
  await expect(rowOf(page, "w00000")).toBeVisible();
}

test("first page", async ({ page }) => {
  const scripts: Promise<Buffer>[] = [];
  page.on("response", (answer) => {
    if (new URL(answer.url()).pathname.endsWith(".js")) scripts.push(answer.body());
  });
  const cpu = await meter(page);
  const link = await server.link(between.url);
  const began = performance.now();
  await page.goto(link);
  await expect(page.getByText("Who has what")).toBeVisible();
  const wall = performance.now() - began;
  line("first page: CPU of its thread until interactive", await cpu(), "s", "≤ 0.6");
  line("first page: wall", wall / 1000, "s");
  const bytes = (await Promise.all(scripts)).reduce(
    (sum, body) => sum + gzipSync(body, { level: 9 }).length,
    0,
  );
  line("first page: script, gzip", bytes / 1000, "kB", "≤ 220");
});

/** Milliseconds from an action until the rows it leads to are painted. */
async function untilPainted(page: Page, act: string, first: string): Promise<number> {
  return page.evaluate(
    async ([what, wanted]) => {
      const began = performance.now();
      const header = [...document.querySelectorAll<HTMLElement>("[role=columnheader]")];
      const search = document.querySelector<HTMLInputElement>("[role=search] input");
      if (what === "sort") header.find((one) => one.textContent?.startsWith("Workload"))?.click();
      else if (search) {
        const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set;
        set?.call(search, what);
        search.dispatchEvent(new Event("input", { bubbles: true }));
      }
      let shown = "";
      const isThere = () => shown.endsWith(wanted ?? "");
      while (!isThere()) {
        await new Promise(requestAnimationFrame);
        const row = document.querySelector("[data-row='0'] [role=rowheader]");
        shown = row?.textContent ?? "";
      }
      await new Promise(requestAnimationFrame);
      return performance.now() - began;
    },
    [act, first],
  );
}

test("10,000 workloads", async ({ page }) => {
  await open(page);
  await page.mouse.move(5, 5);
  const sorts: number[] = [];
  const filters: number[] = [];
  for (let round = 0; round < 10; round += 1) {
    sorts.push(await untilPainted(page, "sort", round % 2 === 0 ? "w09999" : "w00000"));
  }
  for (let round = 0; round < 10; round += 1) {
    const name = `w0${5000 + round}`;
    filters.push(await untilPainted(page, name, name));
  }
  await page.getByRole("searchbox").fill("");
  line("10,000 workloads: sort until painted, median", median(sorts), "ms", "≤ 100");
  line("10,000 workloads: filter until painted, median", median(filters), "ms", "≤ 100");
});

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Rows on the screen or near it. */
const NEAR = 30;

/** The next changes: every second one of a row on the screen, the others of all in turn. */
function changes(from: number, count: number): Frame[] {
  return Array.from({ length: count }, (_, n) => {
    const number = from + n;
    const frame = rows[number % (number % 2 === 0 ? NEAR : rows.length)];
    return { ...frame, object: { ...frame?.object, podsRunning: number % 7 } } as Frame;
  });
}

test("500 changes a second", async ({ page }) => {
  await open(page);
  const cpu = await meter(page);
  const frames = page.evaluate(
    (seconds) =>
      new Promise<number>((resolve) => {
        const began = performance.now();
        let count = 0;
        const next = () => {
          count += 1;
          const passed = performance.now() - began;
          if (passed < seconds * 1000) requestAnimationFrame(next);
          else resolve((count * 1000) / passed);
        };
        requestAnimationFrame(next);
      }),
    SECONDS,
  );
  const before = await cpu();
  let sent = 0;
  const timer = setInterval(() => {
    between.sendAll(changes(sent, CHANGES_PER_S / 20));
    sent += CHANGES_PER_S / 20;
  }, 50);
  const rate = await frames;
  clearInterval(timer);
  const used = (await cpu()) - before;
  line("500 changes/s: frames", rate, "/s", "≥ 50");
  line("500 changes/s: the page's thread", (100 * used) / SECONDS, "%", "≤ 25");
  line("500 changes/s: sent", sent / SECONDS, "/s");
});

test("many changes", async ({ page, browser }) => {
  test.setTimeout(600_000);
  await open(page);
  // A worker that gets data while its debugger is attached never reads on.
  const { rewrite } = between;
  between.rewrite = () => [];
  const session = await debugPage(page);
  // Data that is made once exists from here on, and the text of the first list is forgotten.
  await flood(page, 20_000);
  await flood(page, 20_000);
  const heaps: Record<"page" | "worker", Heap>[] = [];
  const measure = async () => {
    const ofPage = await heapOf(session);
    const worker = await debugWorker(browser);
    heaps.push({ page: ofPage, worker: await heapOf(worker) });
    await worker.detach();
  };
  await measure();
  let seconds = 0;
  for (let round = 0; round < CHANGE_ROUNDS; round += 1) {
    const began = performance.now();
    await flood(page, MANY_CHANGES / CHANGE_ROUNDS);
    seconds += (performance.now() - began) / 1000;
    await measure();
  }
  between.rewrite = rewrite;
  for (const who of ["page", "worker"] as const) {
    const what = `${MANY_CHANGES} changes: ${who}'s`;
    tellGrowth(
      what,
      heaps.map((heap) => heap[who]),
    );
  }
  line(`${MANY_CHANGES} changes: a second`, MANY_CHANGES / seconds, "/s");
});

/** Prints how much a heap grew. A leak grows with every round. */
function tellGrowth(what: string, heaps: Heap[]): void {
  const [first, last] = [heaps[0]?.objects ?? 0, heaps.at(-1)?.objects ?? 0];
  const most = heaps.slice(1).map(({ objects }, at) => objects - (heaps[at]?.objects ?? 0));
  const code = (heaps.at(-1)?.code ?? 0) - (heaps[0]?.code ?? 0);
  line(`${what} objects on the heap, more`, (100 * last) / first - 100, "%", "≤ 5");
  line(`${what} most in one of ${CHANGE_ROUNDS} rounds`, Math.max(...most) / 1000, "kB");
  line(`${what} objects on the heap`, last / 1000, "kB");
  line(`${what} code compiled meanwhile`, code / 1000, "kB");
}

let floods = 0;

/** Sends so many changes as fast as they go, and waits until the page has them. */
async function flood(page: Page, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += BATCH) {
    await between.sendAll(changes(sent, Math.min(BATCH, count - sent)));
  }
  const [last] = rows;
  // The worker holds the text that it read last until it reads more: the second one is short.
  for (let end = 0; end < 2; end += 1) {
    floods += 1;
    const marker = `flood-${floods}-ended`;
    await between.sendAll([{ ...last, object: { ...last?.object, submittedBy: marker } } as Frame]);
    await expect(page.getByText(marker)).toBeVisible({ timeout: 300_000 });
  }
}

test("preemption on the page", async ({ page }) => {
  // As in the published walk-through: team-b takes back the two GPUs that team-a has borrowed.
  const own = await Server.start();
  try {
    const a = await own.project("team-a");
    const b = await own.project("team-b");
    for (const name of ["a1", "a2", "a3", "a4"]) await own.submit(a, name);
    await logIn(page, own);
    await page.goto(`${own.url}/workloads?f=projectName%3D%3Dteam-a`);
    const stopped = page.getByRole("row").filter({ hasText: "E101" });
    const waits = page.getByRole("row").filter({ hasText: "Pending" });
    const runs = page.getByRole("row").filter({ hasText: "Running" });
    await expect(runs).toHaveCount(4);
    const seconds: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const began = performance.now();
      const id = await own.submit(b, "b1", { compute: { gpuDevicesRequest: 2 } });
      await waits.first().waitFor();
      await stopped.first().waitFor();
      seconds.push((performance.now() - began) / 1000);
      await own.remove(id);
      await expect(runs).toHaveCount(4);
    }
    line("preemption, from the submission to the page, p50", median(seconds), "s", "≤ 2");
    line("preemption, from the submission to the page, max", Math.max(...seconds), "s");
  } finally {
    await own.down();
  }
});
