// The published over-quota walk-through from the keyboard alone: no pointer touches the page.
import { expect, goTo, logIn, type Page, rowOf as row, test } from "./fixture";

/** Tab until the element with this role and name has the focus. */
async function tabTo(page: Page, role: Parameters<Page["getByRole"]>[0], name: string | RegExp) {
  const wanted = page.getByRole(role, { name, ...(typeof name === "string" && { exact: true }) });
  await expect(wanted.first()).toBeVisible();
  for (let stops = 0; stops < 60; stops += 1) {
    if (await wanted.first().evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${role} ${String(name)}`);
}

async function press(page: Page, role: Parameters<Page["getByRole"]>[0], name: string | RegExp) {
  await tabTo(page, role, name);
  await page.keyboard.press("Enter");
}

async function type(page: Page, field: string | RegExp, text: string): Promise<void> {
  await tabTo(page, "textbox", field);
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
}

/** Chooses a tile of a group with the arrows. */
async function choose(page: Page, group: string, name: RegExp): Promise<void> {
  const radios = page.getByRole("radiogroup", { name: group }).getByRole("radio");
  const wanted = page.getByRole("radiogroup", { name: group }).getByRole("radio", { name });
  await expect(wanted).toBeVisible();
  const count = await radios.count();
  const isInside = () =>
    page
      .getByRole("radiogroup", { name: group })
      .evaluate((element) => element.contains(document.activeElement));
  for (let stops = 0; stops < 60 && !(await isInside()); stops += 1)
    await page.keyboard.press("Tab");
  if (count === 1) await page.keyboard.press("Space");
  for (let tries = 0; tries <= count && !(await wanted.isChecked()); tries += 1) {
    await page.keyboard.press("ArrowDown");
  }
  await expect(wanted).toBeChecked();
}

async function project(page: Page, name: string): Promise<void> {
  await press(page, "button", "+NEW PROJECT");
  await expect(page.getByRole("textbox", { name: "Project name" })).toBeFocused();
  await page.keyboard.type(name);
  await type(page, /^GPU devices/u, "2");
  await page.keyboard.press("Enter");
  await expect(row(page, name)).toBeVisible();
}

interface Training {
  name: string;
  project: RegExp;
  compute: RegExp;
}

async function stepOne(page: Page, { name, project: of }: Training): Promise<void> {
  await page.keyboard.press("c");
  await page.keyboard.press("t");
  await choose(page, "Project", of);
  await choose(page, "Template", /^Start from scratch/u);
  await type(page, "Training name", name);
  await page.keyboard.press("Enter");
  await expect(page.getByText("step 2 of 2")).toBeVisible();
}

async function newAsset(page: Page, button: string, fill: () => Promise<void>): Promise<void> {
  await press(page, "button", button);
  await expect(page.getByRole("dialog")).toBeVisible();
  await fill();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toBeHidden();
  // The focus is where it was before the sheet.
  await expect(page.getByRole("button", { name: button })).toBeFocused();
}

async function compute(page: Page, name: string, devices: string): Promise<void> {
  await newAsset(page, "+NEW COMPUTE RESOURCE", async () => {
    await type(page, "Name", name);
    await type(page, "GPU devices per pod", devices);
    await type(page, "Request", "100");
  });
}

async function create(page: Page, training: Training): Promise<void> {
  await page.keyboard.press("Shift+Tab");
  await choose(page, "Environment", /^quickstart/u);
  await choose(page, "Compute resource", training.compute);
  await press(page, "button", "CREATE TRAINING");
  await expect(page.getByRole("region", { name: `Workload ${training.name}` })).toBeVisible();
  await press(page, "button", "Close the pane");
  await expect(row(page, training.name)).toContainText("Running");
}

test("over quota, then fairness by preemption, from the keyboard alone", async ({ page, own }) => {
  await own.deleteSamples();
  await logIn(page, own);
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await expect(page.getByRole("heading", { name: "Projects", level: 1 })).toBeVisible();
  await project(page, "team-a");
  await project(page, "team-b");

  const a2 = { name: "a2", project: /^team-a/u, compute: /^two-gpus/u };
  const a1 = { name: "a1", project: /^team-a/u, compute: /^one-gpu/u };
  const b1 = { name: "b1", project: /^team-b/u, compute: /^one-gpu/u };
  const b2 = { ...b1, name: "b2" };
  await stepOne(page, a2);
  await newAsset(page, "+NEW ENVIRONMENT", async () => {
    await type(page, "Name", "quickstart");
    await type(page, "Image URL", "runai.jfrog.io/demo/quickstart");
  });
  await compute(page, "one-gpu", "1");
  await compute(page, "two-gpus", "2");
  for (const training of [a2, a1, b1, b2]) {
    if (training !== a2) await stepOne(page, training);
    await create(page, training);
  }
  // Without a reload: a1 is preempted, and says why, for whom, and what would help.
  await expect(row(page, "a1")).toContainText("E101");
  await tabTo(page, "rowheader", "b2");
  while (!(await row(page, "a1").getByRole("rowheader").evaluate(isFocused))) {
    await page.keyboard.press("ArrowDown");
  }
  await page.keyboard.press("Enter");
  const pane = page.getByRole("region", { name: "Workload a1" });
  await expect(pane.getByRole("tab", { name: "Explain" })).toHaveAttribute("aria-selected", "true");
  await expect(pane).toContainText("team-b/b2");
  await expect(pane).toContainText("What would let it start");
  await tabTo(page, "tab", "Explain");
  await page.keyboard.press("ArrowRight");
  await expect(pane.getByRole("listitem").filter({ hasText: "E101" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(pane).toBeHidden();
});

function isFocused(element: Element): boolean {
  return element === document.activeElement;
}

test("letters that act on their own can be switched off, and on again", async ({
  page,
  server,
  between,
}) => {
  await logIn(page, server, between);
  await goTo(page, "Projects");
  const set = async (on: boolean) => {
    await page.getByRole("button", { name: /^Account of/u }).click();
    await page.getByRole("menuitem", { name: "Keys" }).click();
    const dialog = page.getByRole("dialog", { name: "Keys" });
    await dialog.getByRole("checkbox").setChecked(on);
    await page.keyboard.press("Escape");
    await expect(dialog).toBeHidden();
  };
  await set(false);
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.keyboard.press("?");
  await expect(page).toHaveURL(/projects/u);
  await expect(page.getByRole("dialog")).toBeHidden();
  await set(true);
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await expect(page).toHaveURL(/nodes/u);
});
