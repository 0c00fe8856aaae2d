// Faults of the session: it ends, its rights change, a half of it is missing.
import { expect, goTo, logIn, logInAs, rowOf, test } from "./fixture";

test("session ended while a form is filled (log in again, the form is there)", async ({
  page,
  server,
  watch,
}) => {
  watch.expectFailure(/^\/api\/v1\/org-unit\/projects$/u, 401);
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
  // One can copy something first, and come back to it.
  await page.keyboard.press("Escape");
  await expect(again).toBeHidden();
  // What needs a session asks for it again.
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(again).toBeVisible();
  await again.getByLabel("User").fill(user);
  await again.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
  await expect(again).toBeHidden();
  await expect(sheet.getByRole("alert")).toContainText("log in");
  await expect(sheet.getByLabel("Project name")).toHaveValue("typed-before");
  await expect(sheet.getByLabel(/^GPU devices/u)).toHaveValue("3");
  await sheet.getByRole("button", { name: "CREATE PROJECT" }).click();
  await expect(rowOf(page, "typed-before")).toContainText("3");
});

test("role given or taken while a page is open", async ({ page, server, team, watch }) => {
  // Of a workload that is not for the user any more.
  watch.allowFailure(/\/workloads\/[^/]+\/(events|explain)$/u, 403, 404);
  const rules = "/api/v1/authorization/access-rules";
  const user = "roles@example.com";
  const password = await server.user(user);
  await server.submit(team.id, "a1");
  await logInAs(page, `${server.url}/overview`, user, password);
  await expect(page.getByText("No role here")).toBeVisible();
  const viewer = await server.give(user, "Viewer");
  await goTo(page, "Workloads");
  await expect(rowOf(page, "a1")).toBeVisible();
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeHidden();
  // Of another project alone: the workload was not deleted.
  await rowOf(page, "a1").click();
  const other = await server.project(`${team.name}-b`);
  const there = await server.give(user, "Viewer", other);
  await server.api("DELETE", `${rules}/${viewer}`);
  const pane = page.getByRole("region", { name: "Workload a1" });
  await expect(pane).toContainText("is not in the list any more");
  await expect(pane).toContainText("your roles do not allow you to see it");
  await expect(pane).not.toContainText("was deleted");
  await page.keyboard.press("Escape");
  await server.api("DELETE", `${rules}/${there}`);
  const again = await server.give(user, "Viewer");
  await expect(rowOf(page, "a1")).toBeVisible();
  const editor = await server.give(user, "Editor");
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeVisible();
  // Taken: the button that was there leaves, and then the page.
  await server.api("DELETE", `${rules}/${editor}`);
  await expect(page.getByRole("button", { name: "+NEW WORKLOAD" })).toBeHidden();
  await expect(rowOf(page, "a1")).toBeVisible();
  await server.api("DELETE", `${rules}/${again}`);
  await expect(page.getByText("No role here")).toBeVisible();
  await expect(rowOf(page, "a1")).toBeHidden();
});

test("403 for one widget of a page", async ({ page, server, between, team, watch }) => {
  watch.expectFailure(/\/(events|explain)$/u, 403);
  await server.submit(team.id, "a1", { compute: { gpuDevicesRequest: 64 } });
  await logIn(page, server, between);
  between.refuse(/\/events\?/u, 403, "reading the events of workloads needs the role Viewer");
  const roles = ["Viewer", "Editor"];
  const missingPermission = { action: "read", resourceType: "workloads", roles };
  between.refuse(/parts=diagnosis/u, 403, "trying it out needs the role Viewer", {
    missingPermission,
  });
  await goTo(page, "Workloads");
  await rowOf(page, "a1").click();
  const pane = page.getByRole("region", { name: "Workload a1" });
  // A part of a tab: what is known is beside it.
  await expect(pane.getByRole("alert")).toContainText("trying it out needs the role Viewer");
  await expect(pane.getByRole("alert")).toContainText("it is given: Viewer, Editor.");
  await expect(pane).toContainText("P101");
  // A whole tab: the others are as they were.
  await pane.getByRole("tab", { name: "Event history" }).click();
  await expect(pane.getByRole("alert")).toContainText("needs the role Viewer · request r-1");
  await pane.getByRole("tab", { name: "Details" }).click();
  await expect(pane).toContainText("runai.jfrog.io/demo/quickstart");
  await expect(rowOf(page, "a1")).toContainText("Pending");
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

test("a link used twice", async ({ page, server, watch }) => {
  watch.expectFailure(/^\/elastane\/v1\/session$/u, 401);
  const link = await server.link();
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(page.url()).not.toContain("once");
  await page.evaluate(() => localStorage.clear());
  await page.goto("about:blank");
  await page.goto(link);
  // And when that was.
  await expect(page.getByRole("alert")).toContainText(/used.*, at 2\d{3}-/u);
});

test("a link opened where another one is logged in: its own user is", async ({
  app: page,
  server,
}) => {
  const email = "by-link@example.com";
  const { id } = await server.api<{ id: string }>("POST", "/api/v1/users", { email });
  await page.goto(await server.link(server.url, id));
  await expect(page.getByText("This is your first password.")).toBeVisible();
});

test("signing out without the server: it is said, and tried again", async ({
  page,
  server,
  between,
  watch,
}) => {
  watch.expectFailure(/^\/elastane\/v1\/session$/u, 503);
  await logIn(page, server, between);
  const go = between.refuse(/^\/elastane\/v1\/session$/u, 503, "the server ends");
  await page.getByRole("button", { name: /^Account of/u }).click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  const told = page.getByRole("dialog", { name: "Still logged in" });
  await expect(told).toContainText("the server ends");
  go();
  await told.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
});

test("the cookie without the page secret", async ({ app: page, context, watch }) => {
  watch.expectFailure(/^\/api\/v1\/workloads$/u, 401);
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(await context.cookies()).toHaveLength(1);
  const status = await page.evaluate(async () => (await fetch("/api/v1/workloads")).status);
  expect(status).toBe(401);
});

test("the secret without the cookie", async ({ app: page, context, watch }) => {
  watch.expectFailure(/^\/(api\/v1\/workloads|elastane\/v1\/session)$/u, 401);
  const secret = await page.evaluate(() => localStorage.getItem("elastane-page"));
  expect(secret).toMatch(/./u);
  await context.clearCookies();
  await page.reload();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  const status = await page.evaluate(async (kept) => {
    const headers = { "x-elastane-page": kept ?? "" };
    return (await fetch("/api/v1/workloads", { headers })).status;
  }, secret);
  expect(status).toBe(401);
});
