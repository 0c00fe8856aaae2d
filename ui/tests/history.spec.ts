// The event history of a workload: older pages, and what stays when a request fails.
import { expect, goTo, logIn, rowOf, test } from "./fixture";

test("event history of more than a page: older ones on request, each once", async ({
  app: page,
  server,
  team,
}) => {
  const id = await server.submit(team.id, "a1");
  for (let count = 0; count < 201; count += 1) {
    const labels = [{ name: "n", value: `v${count}` }];
    await server.api("PATCH", `/api/v1/workloads/trainings/${id}`, { spec: { labels } });
  }
  await page.goto(new URL(`/workloads/${id}/events`, page.url()).href);
  const events = page.getByRole("region", { name: "Workload a1" }).getByRole("listitem");
  await expect(events).toHaveCount(200);
  const older = page.getByRole("button", { name: "Show older" });
  await older.click();
  await expect(older).toBeHidden();
  expect(await events.count()).toBeGreaterThan(201);
  const texts = await events.allTextContents();
  expect(texts.filter((text) => text.includes("Submitted"))).toHaveLength(1);
});

test("a history that is refused or slow: no word that the workload is not there", async ({
  page,
  server,
  between,
  watch,
}) => {
  watch.allowFailure(/\/workloads\/none\/events$/u, 404);
  watch.allowFailure(/\/workloads\/none\/events$/u, 500);
  const held: (() => void)[] = [];
  const end = between.rule((asked, answer) => {
    if (!/\/workloads\/none\/events/u.test(asked.url ?? "")) return false;
    held.push(() => {
      answer.writeHead(500, { "content-type": "application/json" });
      answer.end(JSON.stringify({ code: 500, message: "the store does not answer" }));
    });
    return true;
  });
  await logIn(page, server, between);
  await page.goto(`${between.url}/workloads/none`);
  const pane = page.getByRole("region", { name: /^Workload/u });
  await expect(pane).toBeVisible();
  await expect(pane).not.toContainText("There is no workload");
  await expect.poll(() => held.length).toBeGreaterThan(0);
  for (const answer of held) answer();
  await expect(pane.getByRole("alert")).toContainText("the store does not answer");
  await expect(pane).not.toContainText("There is no workload");
  end();
  await pane.getByRole("button", { name: "Try again" }).click();
  await expect(pane).toContainText("There is no workload with this id");
});

test("a request that fails later: what was shown stays, as of its time, below the alert", async ({
  page,
  server,
  between,
  team,
  watch,
}) => {
  watch.allowFailure(/\/workloads\/[^/]+\/(events|explain)$/u, 500);
  watch.allowFailure(/\/workloads\/[^/]+$/u, 500);
  const id = await server.submit(team.id, "a1");
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  const tab = (name: string) => pane.getByRole("tab", { name }).click();
  const shown: [tab: string, text: string][] = [
    ["Explain", "of a quota of"],
    ["Details", "Created by"],
    ["Event history", "Started"],
  ];
  for (const [name, text] of shown) {
    await tab(name);
    await expect(pane).toContainText(text);
    const end = between.refuse(/\/workloads\/[^/]+(\/events|\/explain)?(\?|$)/u, 500, "no answer");
    const suspend = name !== "Details";
    await server.api("POST", `/api/v1/workloads/trainings/${id}/${suspend ? "suspend" : "resume"}`);
    await expect(pane.getByRole("alert").first()).toContainText("no answer");
    await expect(pane).toContainText(text);
    await expect(pane).toContainText(/As of .*:/u);
    end();
    await pane.getByRole("button", { name: "Try again" }).first().click();
    await expect(pane.getByText(/As of/u).first()).toBeHidden();
  }
});

test("the address of a workload by project and name leads to its pane", async ({
  app: page,
  server,
  team,
}) => {
  const id = await server.submit(team.id, "a1");
  await page.goto(new URL(`/w/${team.name}/a1`, page.url()).href);
  await expect(page.getByRole("region", { name: "Workload a1" })).toBeVisible();
  await expect(page).toHaveURL(new RegExp(`/workloads/${id}$`, "u"));
  await page.goto(new URL(`/w/${team.name}/a9`, page.url()).href);
  await expect(page.getByText(`There is no workload a9 in project ${team.name}`)).toBeVisible();
});
