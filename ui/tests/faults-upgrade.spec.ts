// Another version of the interface: an upgraded server, a missing file of the former one.
import { choose, expect, goTo, logIn, test } from "./fixture";

const NEXT = { version: "9.9.9", interface: "0".repeat(64) };

test("upgraded under an open page (asks to reload; a file of the former version is missing)", async ({
  page,
  server,
  between,
  team,
  watch,
}) => {
  watch.expectError(/Failed to fetch dynamically imported module/u);
  watch.expectFailure(/^\/_ui\/Nodes-/u, 404);
  await logIn(page, server, between);
  await goTo(page, "Workloads");
  await page.getByRole("button", { name: "+NEW WORKLOAD" }).click();
  await page.getByRole("menuitem", { name: "Training" }).click();
  await choose(page.getByRole("radio", { name: team.name }));
  await page.getByLabel("Training name").fill("typed-before");
  between.rewrite = (frame) => [
    frame.kind === "server" ? { ...frame, object: { ...frame.object, ...NEXT } } : frame,
  ];
  const files = between.refuse(/^\/_ui\/Nodes-/u, 404, "there is no such file");
  between.cut();
  const notice = page.getByRole("status").filter({ hasText: "version 9.9.9" });
  await expect(notice).toContainText("Reload to use it. What you typed is kept.");

  await page.getByRole("navigation").getByRole("link", { name: "Nodes" }).click();
  await expect(page.getByRole("heading", { name: "A file of this page is missing" })).toBeVisible();
  // The rest of the page works.
  await page.goBack();
  await expect(page.getByLabel("Training name")).toHaveValue("typed-before");
  between.rewrite = (frame) => [frame];
  files();
  await notice.getByRole("button", { name: "Reload" }).click();
  await expect(page.getByLabel("Training name")).toHaveValue("typed-before");
  await expect(page.getByRole("radio", { name: team.name })).toBeChecked();
  await expect(notice).toBeHidden();
});
