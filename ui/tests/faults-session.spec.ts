// Faults of the session: it ends, its rights change, other sites use it, a half of it is missing.
import { createServer } from "node:http";

import { expect, goTo, logIn, logInAs, rowOf, test } from "./fixture";

test("session ended while a form is filled", async ({ page, server }) => {
  const user = "forms@example.com";
  const password = await server.user(user);
  await server.give(user, "Editor");
  await logInAs(page, `${server.url}/overview`, user, password);
  await goTo(page, "Projects");
  await page.getByRole("button", { name: "+NEW PROJECT" }).click();
  const sheet = page.getByRole("dialog", { name: "New project" });
  await sheet.getByLabel("Project name").fill("typed-before");
  await sheet.getByLabel(/^GPU devices/u).fill("3");
  // It ended elsewhere: by the user, on another machine.
  const other = await page.context().browser()?.newContext();
  const there = await other?.newPage();
  if (!there) throw new Error("no other browser");
  await logInAs(there, `${server.url}/overview`, user, password);
  await there.getByRole("button", { name: `Account of ${user}` }).click();
  await there.getByRole("menuitem", { name: "Sign out everywhere" }).click();
  await expect(there.getByRole("heading", { name: "Log in" })).toBeVisible();
  await other?.close();

  const again = page.getByRole("dialog", { name: "Log in again" });
  await expect(again).toBeVisible();
  // Whoever wants to copy something first can, and comes back to it.
  await page.keyboard.press("Escape");
  await expect(again).toBeHidden();
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(sheet.getByRole("alert")).toContainText("log in");
  await sheet.getByRole("button", { name: "CANCEL" }).focus();
  await page.getByRole("button", { name: "Log in", includeHidden: true }).dispatchEvent("click");
  await again.getByLabel("User").fill(user);
  await again.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await expect(again).toBeHidden();
  await expect(sheet.getByLabel("Project name")).toHaveValue("typed-before");
  await expect(sheet.getByLabel(/^GPU devices/u)).toHaveValue("3");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(rowOf(page, "typed-before")).toContainText("3");
});

test("role given and taken while a page is open", async ({ page, server, team, watch }) => {
  // Parts of the page come and go with the role, and what is below them moves: that is the matter here.
  watch.shiftMax = 0.1;
  const user = "roles@example.com";
  const password = await server.user(user);
  await server.submit(team.id, "a1");
  await logInAs(page, `${server.url}/overview`, user, password);
  await expect(page.getByText("No role here")).toBeVisible();
  const viewer = await server.give(user, "Viewer");
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toBeVisible();
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeHidden();
  const editor = await server.give(user, "Editor");
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeVisible();
  // Taken: the button that was there leaves, and then the page.
  const rules = "/api/v1/authorization/access-rules";
  await server.api("DELETE", `${rules}/${editor}`);
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeHidden();
  await expect(rowOf(page, "a1")).toBeVisible();
  await server.api("DELETE", `${rules}/${viewer}`);
  await expect(page.getByText("No role here")).toBeVisible();
  await expect(rowOf(page, "a1")).toBeHidden();
});

test("403 for one widget of a page", async ({ page, server, between, team }) => {
  await server.submit(team.id, "a1");
  await logIn(page, server, between);
  between.refuse(/\/events\?/u, 403, "reading the events of workloads needs the role Viewer");
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  await pane.getByRole("tab", { name: "Event history" }).click();
  await expect(pane.getByRole("alert")).toContainText("needs the role Viewer · request r-1");
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane).toContainText("runai.jfrog.io/demo/quickstart");
  await expect(rowOf(page, "a1")).toContainText("Running");
});

test("what a role does not show is left out, and the rest of the page works", async ({
  page,
  server,
}) => {
  const user = "environments@example.com";
  const password = await server.user(user);
  await server.give(user, "Environment administrator");
  await logInAs(page, `${server.url}/overview`, user, password);
  await expect(page.getByText("No role here")).toBeVisible();
  const links = page.getByRole("navigation").getByRole("link");
  await expect(links).toHaveText(["Environments", "Nodes", "Projects"]);
  await goTo(page, "Nodes");
  await expect(page.getByRole("heading", { name: "node-1" })).toBeVisible();
  await goTo(page, "Environments");
  await expect(page.getByRole("button", { name: "+NEW ENVIRONMENT" })).toBeVisible();
});

test("a link used twice", async ({ page, server }) => {
  const link = await server.link();
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("once");
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  await expect(page.getByRole("alert")).toContainText("used");
});

test("the cookie without the page secret, and the secret without the cookie", async ({
  app: page,
  context,
}) => {
  const secret = await page.evaluate(() => localStorage.getItem("elastane-page"));
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  const status = await page.evaluate(async () => (await fetch("/api/v1/workloads")).status);
  expect(status).toBe(401);

  await context.clearCookies();
  await page.evaluate((kept) => localStorage.setItem("elastane-page", kept ?? ""), secret);
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
});

/** A page at an address of its own, which has the browser do what the script says. */
async function elsewhere(host: string, html: string): Promise<{ url: string; close: () => void }> {
  const http = createServer((_, answer) => {
    answer.writeHead(200, { "content-type": "text/html" });
    answer.end(`<!doctype html><title>waits</title>${html}`);
  });
  return new Promise((resolve) => {
    http.listen(0, "127.0.0.1", () => {
      const address = http.address();
      const port = typeof address === "object" && address ? address.port : 0;
      resolve({ url: `http://${host}:${port}/`, close: () => http.close() });
    });
  });
}

/** Posts, embeds and opens our page, and writes into its title what it saw of it. */
function attack(url: string): string {
  return `<iframe id="frame" src="${url}/overview"></iframe><script>
    const seen = [];
    const done = (name) => (value) => seen.push(name + ":" + value);
    const body = JSON.stringify({ name: "stolen", parentId: "1" });
    const post = (options) => fetch("${url}/api/v1/org-unit/projects", { method: "POST", body, credentials: "include", ...options });
    const opened = window.open("${url}/overview");
    addEventListener("load", async () => {
      await post({ mode: "no-cors" }).then((answer) => done("post")(answer.type), done("post"));
      await post({ headers: { "x-elastane-page": "guess" } }).then(done("secret"), () => done("secret")("refused"));
      await fetch("${url}/elastane/v1/session", { credentials: "include" }).then(done("read"), () => done("read")("refused"));
      let inside = "closed";
      try { inside = document.querySelector("#frame").contentDocument?.body.innerText ?? "closed"; } catch {}
      done("frame")(inside);
      // The policy of the page that was opened takes it away from who opened it.
      while (!opened.closed) await new Promise((then) => setTimeout(then, 20));
      done("opened")("closed");
      document.title = seen.join(" ");
    });
  </script>`;
}

for (const [who, host] of [
  ["a page of another site", "localhost"],
  // Sites do not differ by their ports: a strict cookie is sent, as from a workload at a sibling host.
  ["a page of a workload at a sibling host", "127.0.0.1"],
] as const) {
  test(`${who} that posts, embeds, opens`, async ({ app: page, server, context, watch }) => {
    watch.expected.push(/CORS policy|frame-ancestors|Cross-Origin|X-Frame/iu);
    const site = await elsewhere(host, attack(server.url));
    const other = await context.newPage();
    await other.goto(site.url);
    const closed = "post:opaque secret:refused read:refused frame:closed opened:closed";
    await expect(other).toHaveTitle(closed);
    site.close();
    // What was opened is our page, which works, and is nobody's to steer.
    await expect.poll(() => context.pages().length).toBe(3);
    const opened = context.pages().find((one) => one !== page && one !== other);
    await expect(
      opened?.getByRole("heading", { name: "Overview" }) ?? page.locator("x"),
    ).toBeVisible();
    expect(await opened?.evaluate(() => window.opener)).toBeNull();
    await goTo(page, "Projects");
    await expect(page.getByRole("grid")).toBeVisible();
    await expect(rowOf(page, "stolen")).toBeHidden();
  });
}
