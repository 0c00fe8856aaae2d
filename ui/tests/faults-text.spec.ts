// Hostile texts from the server and typed ones: none becomes markup or breaks a page.
import type { IncomingMessage, ServerResponse } from "node:http";

import type { Frame } from "./between";
import { expect, goTo, type Locator, logIn, type Page, test } from "./fixture";

const HOSTILE = {
  script: "<script>document.title='owned'</script>",
  image: '"><img src=x onerror="document.title=`owned`">',
  long: "x".repeat(10_000),
  rightToLeft: "\u202Egpj.\u2066exe\u05D0",
  nul: "a\u0000b",
  half: "\uD83D",
};
const TEXTS = Object.entries(HOSTILE);

test("a name, label, message with <script>, 10,000 characters, right-to-left marks, NUL, half an emoji", async ({
  page,
  server,
  between,
  team,
}) => {
  const real = await server.submit(team.id, "a1", { compute: { gpuDevicesRequest: 64 } });
  // The server lets in few of these texts. Copies of a workload have each of them everywhere.
  between.rewrite = (frame) => {
    if (frame.kind !== "workload" || frame.type !== "changed" || frame.id !== real) return [frame];
    const copies = TEXTS.map(([id, text]): Frame => {
      const more = { id, name: text, submittedBy: text, phase: "Pending", why: because(text) };
      return { ...frame, id, object: { ...frame.object, ...more } };
    });
    return [frame, ...copies];
  };
  between.rule(async ({ url = "" }: IncomingMessage, answer: ServerResponse) => {
    const [, id = ""] = /\/v1\/workloads\/(\w+)/u.exec(url) ?? [];
    if (!Object.hasOwn(HOSTILE, id)) return false;
    const whole = await server.api("GET", url.replace(`/workloads/${id}`, `/workloads/${real}`));
    answer.writeHead(200, { "content-type": "application/json" });
    answer.end(JSON.stringify(withText(whole, HOSTILE[id as keyof typeof HOSTILE])));
    return true;
  });
  await logIn(page, server, between);
  const grid = page.getByRole("grid");
  for (const [id, text] of TEXTS) {
    await test.step(id, async () => {
      // By the address: names are no handles here.
      await page.goto(`${between.url}/workloads/${id}/explain`);
      const pane = page.getByRole("region", { name: /^Workload/u });
      await has(pane.getByRole("heading", { level: 2 }), text);
      const row = grid.locator("[role=row][aria-current=true]");
      await has(row.getByRole("rowheader"), text);
      await has(row.locator("[data-column='2']"), text);
      await has(pane.getByRole("tabpanel"), text);
      await pane.getByRole("tab", { name: "Event history" }).click();
      await has(pane.getByRole("listitem").first(), text);
      await pane.getByRole("tab", { name: "Details" }).click();
      const pair = (of: string) => pane.getByRole("definition").filter({ hasText: of });
      await has(pair("of-label="), `of-label=${text}`);
      await has(pair("of-annotation="), `of-annotation=${text}`);
      await has(pair("of-variable="), `of-variable=${text}`);
      await isIntact(page);
    });
  }
  // Right-to-left text stays within its cell: the next columns begin as in other rows.
  await page.goto(`${between.url}/workloads`);
  await expect(grid).toHaveAttribute("aria-rowcount", /\d/u);
  await expect(page.locator("[data-row='1']")).toBeVisible();
  const lefts = await page
    .locator("[data-row] [data-column='2']")
    .evaluateAll((cells) => new Set(cells.map((cell) => cell.getBoundingClientRect().left)).size);
  expect(lefts).toBe(1);
});

function because(message: string) {
  return { code: "P102", message, at: "2026-11-28T09:00:00Z" };
}

/** An answer about a workload, with the text in each place that has one. */
function withText(answer: Record<string, unknown>, text: string): Record<string, unknown> {
  const events = (answer.events as object[] | undefined)?.map((event) => ({
    ...event,
    message: text,
  }));
  return {
    ...answer,
    ...(events && { events }),
    ...("pendingReasons" in answer && { pendingReasons: [because(text)] }),
    ...("additionalFields" in answer && {
      additionalFields: { labels: { "of-label": text }, annotations: { "of-annotation": text } },
      environmentVariables: { "of-variable": text },
    }),
  };
}

/** Waits until an element has the text. It is sent to the page as numbers, which nothing changes. */
async function has(place: Locator, text: string): Promise<void> {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  await expect
    .poll(() =>
      place.evaluate(
        (element, codes) => element.textContent.includes(String.fromCharCode(...codes)),
        units,
      ),
    )
    .toBe(true);
}

/** No text became markup, and none makes the page wider than the screen. */
async function isIntact(page: Page): Promise<void> {
  await expect(page.locator("#root").locator("script, img")).toHaveCount(0);
  expect(await page.title()).toMatch(
    /^(Workloads|Nodes|Projects|Overview|New training) · Elastane$/u,
  );
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(1440);
}

test("the same texts typed into a form, a search and an address", async ({ app: page, watch }) => {
  watch.allowFailure(/\/workloads\/[^/]*\/events$/u, 400, 404);
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  for (const [, text] of TEXTS) {
    await sheet.getByLabel("Project name").fill(text);
    await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
    await expect(sheet.getByLabel("Project name")).toHaveAccessibleDescription(/at most 49/u);
    await expect(sheet.getByLabel("Project name")).toHaveAttribute("aria-invalid", "true");
    await sheet.getByLabel("Project name").fill("");
  }
  await sheet.getByRole("button", { name: "CANCEL" }).click();

  for (const [, text] of TEXTS) {
    await page.getByRole("searchbox").fill(text);
    await expect(page.getByText("Nothing matches")).toBeVisible();
    await page.reload();
    await expect(page.getByText("Nothing matches")).toBeVisible();
  }
  const addresses = [
    "/workloads/%00",
    "/workloads/%E0%A4%A",
    "/workloads/%3Cscript%3E",
    "/projects?f=%E0%A4%A&f===&sort=%00&q=%",
    "/workloads?f=name=@%3Cscript%3E&sort=__proto__",
    "/assets/constructor",
    "/nodes/%F0%9F",
  ];
  const root = new URL(page.url()).origin;
  for (const address of addresses) {
    await page.goto(root + address);
    await expect(page.getByRole("navigation")).toBeVisible();
    await expect(page.getByText("This page failed")).toBeHidden();
    await expect(page.getByRole("main").getByRole("heading").first()).toBeVisible();
  }
  await isIntact(page);
});
