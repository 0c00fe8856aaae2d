// Logging in with a password, and the change of one that was given out.
import { AxeBuilder } from "./axe";
import { expect, test } from "./fixture";

test("a password that was given out is changed at the first login", async ({
  page,
  server,
  watch,
}) => {
  watch.expectFailure(/^\/elastane\/v1\/session$/u, 401);
  watch.expectFailure(/^\/api\/v1\/me\/password$/u, 400);
  const given = await server.newUser("lead@example.com");
  await page.goto(`${server.url}/workloads`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(await new AxeBuilder(page).violations()).toEqual([]);

  await page.getByLabel("User").fill("lead@example.com");
  await page.getByLabel("Password").fill("not this one");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Password").fill(given);
  await page.getByRole("button", { name: "LOG IN" }).click();

  await expect(page.getByRole("heading", { name: "Choose a password" })).toBeVisible();
  await page.getByLabel("Current password").fill(given);
  await page.getByLabel("New password").fill("short");
  await page.getByRole("button", { name: "CHANGE PASSWORD" }).click();
  await expect(page.getByRole("alert")).toContainText("8");
  expect(await new AxeBuilder(page).violations()).toEqual([]);
  await page.getByLabel("New password").fill("correct horse battery");
  await page.getByRole("button", { name: "CHANGE PASSWORD" }).click();
  // A user without a role is told so, and how one is given.
  await expect(page.getByText("No role here")).toBeVisible();
  await expect(page.getByText("One of these roles allows it in the cluster")).toContainText(
    "L1 researcher",
  );
  await expect(page.getByText("--user lead@example.com --role ROLE")).toBeVisible();

  await page
    .getByRole("banner")
    .getByRole("button", { name: /lead@example.com/u })
    .click();
  await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  await page.getByLabel("User").fill("lead@example.com");
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "LOG IN" }).click();
  await expect(page.getByText("No role here")).toBeVisible();
});
