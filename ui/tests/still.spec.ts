// The page keeps still: under the pointer, with the focus, scrolled, over a lost connection.
import type { Between, Frame } from "./between";
import { connection, expect, type Locator, logIn, type Page, rowOf, test, tryNow } from "./fixture";

/** Frames of the workloads that the browser was sent, by name. */
function framesOf(between: Between): Map<string, Frame> {
  const frames = new Map<string, Frame>();
  between.rewrite = (frame) => {
    if (frame.kind === "workload" && frame.object) frames.set(String(frame.object.name), frame);
    return [frame];
  };
  return frames;
}

/** A workload like another one, made at a minute of the year 2030. */
function madeAt(like: Frame | undefined, name: string, minute: number): Frame {
  const createdAt = `2030-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
  return { ...like, id: name, object: { ...like?.object, id: name, name, createdAt } } as Frame;
}

const nameAt = (page: Page, row: number): Locator =>
  page.locator(`[data-row='${row}']`).getByRole("rowheader");

test("nothing moves under the pointer, or with the focus in the grid", async ({
  page,
  crowd,
  inFrontOf,
}) => {
  const between = await inFrontOf(crowd);
  const frames = framesOf(between);
  await logIn(page, crowd, between);
  // Four rows: where the order follows, a new row at the top moves those below it.
  await page.goto(`${between.url}/workloads?f=phase==Running`);
  const top = nameAt(page, 0);
  await expect(top).toHaveText(/^w\d{3}$/u);
  const first = await top.innerText();
  const second = await nameAt(page, 1).innerText();
  const like = await nameAt(page, 2).innerText();
  // Else a row that the server changes meanwhile, as when its GPU is idle for minutes, would be back.
  between.rewrite = (frame) => (frame.kind === "workload" ? [] : [frame]);
  const fresh = (count: number) =>
    page.getByRole("button", { name: `${count} new ↑`, exact: true });

  await test.step("the pointer: new rows are counted, changes are shown in place", async () => {
    await top.hover();
    between.send(madeAt(frames.get(like), "new-1", 1));
    between.send(madeAt(frames.get(like), "new-2", 2));
    await expect(fresh(2)).toBeVisible();
    await expect(top).toHaveText(first);
    // Another status, by which it leaves the list; and one that is deleted.
    const leaving = frames.get(first);
    between.send({ ...leaving, object: { ...leaving?.object, phase: "Failed" } } as Frame);
    between.send({ type: "deleted", kind: "workload", id: String(frames.get(second)?.id) });
    await expect(rowOf(page, first)).toContainText("Failed");
    await expect(rowOf(page, first)).toHaveAttribute("data-gone", "true");
    await expect(rowOf(page, second)).toHaveAttribute("data-gone", "true");
    await expect(top).toHaveText(first);
    await expect(nameAt(page, 1)).toHaveText(second);
  });
  await test.step("n new ↑: shows them, and the order is kept again", async () => {
    await fresh(2).click();
    await expect(top).toHaveText("new-2");
    await expect(nameAt(page, 1)).toHaveText("new-1");
    await expect(page.getByRole("region", { name: /^Workload/u })).toBeHidden();
    await expect(fresh(2)).toBeHidden();
    await expect(rowOf(page, first)).toBeHidden();
    await expect(rowOf(page, second)).toBeHidden();
    between.send(madeAt(frames.get(like), "new-3", 3));
    await expect(fresh(1)).toBeVisible();
    await expect(top).toHaveText("new-2");
  });
  await test.step("elsewhere: the order follows", async () => {
    await page.mouse.move(5, 5);
    await expect(top).toHaveText("new-3");
    between.send(madeAt(frames.get(like), "new-4", 4));
    await expect(top).toHaveText("new-4");
  });
  await test.step("the focus, and R", async () => {
    await top.focus();
    between.send(madeAt(frames.get(like), "new-5", 5));
    await expect(fresh(1)).toBeVisible();
    await expect(top).toHaveText("new-4");
    await page.keyboard.press("R");
    await expect(top).toHaveText("new-5");
    between.send(madeAt(frames.get(like), "new-6", 6));
    await expect(fresh(1)).toBeVisible();
    await expect(top).toHaveText("new-5");
  });
});

test("nothing moves while a list is scrolled, nor a row that is read afterwards", async ({
  page,
  crowd,
  inFrontOf,
}) => {
  const between = await inFrontOf(crowd);
  const frames = framesOf(between);
  await page.clock.install();
  await logIn(page, crowd, between);
  await page.goto(`${between.url}/workloads`);
  await expect(nameAt(page, 0)).toHaveText(/^w\d{3}$/u);
  // The list counts as being scrolled as long as this clock stands.
  await page.clock.pauseAt(Date.now() + 60_000);
  const grid = page.getByRole("grid");
  await grid.evaluate((element) => (element.scrollTop = 50 * 36));
  await expect(nameAt(page, 50)).toBeVisible();
  const read = await nameAt(page, 50).innerText();
  const place = async () => Math.round((await rowOf(page, read).boundingBox())?.y ?? 0);
  const before = await place();
  between.send(madeAt(frames.get("w199"), "new-1", 1));
  between.send(madeAt(frames.get("w199"), "new-2", 2));
  await expect(page.getByRole("button", { name: "2 new ↑" })).toBeVisible();
  await expect(nameAt(page, 50)).toHaveText(read);
  await page.clock.runFor(1500);
  // The order follows: what is read is two rows further down, and stays where it is on the screen.
  await expect(nameAt(page, 52)).toHaveText(read);
  await expect.poll(place).toBe(before);
  between.send(madeAt(frames.get("w199"), "new-3", 3));
  await expect(nameAt(page, 53)).toHaveText(read);
  await expect.poll(place).toBe(before);
  // A choice of the user gives another order, in which rows have other places.
  await page.getByRole("columnheader", { name: "Workload" }).click();
  await expect(page.getByRole("columnheader", { name: "Workload" })).toHaveAttribute(
    "aria-sort",
    "ascending",
  );
  await expect(nameAt(page, 53)).not.toHaveText(read);
});

for (const [how, reason] of [
  ["goes on where it was", undefined],
  ["begins with a new list", "too-old"],
] as const) {
  test(`a lost connection is mended without losing the place: the stream ${how}`, async ({
    page,
    crowd,
    inFrontOf,
  }) => {
    const between = await inFrontOf(crowd);
    await logIn(page, crowd, between);
    await page.goto(`${between.url}/workloads?sort=name`);
    const grid = page.getByRole("grid");
    await expect(rowOf(page, "w000")).toBeVisible();
    await grid.evaluate((element) => (element.scrollTop = 100 * 36));
    for (const name of ["w103", "w105"]) {
      await rowOf(page, name).locator("[data-check]").click();
    }
    await rowOf(page, "w104").click();
    const pane = page.getByRole("region", { name: "Workload w104" });
    await pane.getByRole("tab", { name: "Details" }).click();
    const panel = pane.getByRole("tabpanel");
    await expect(panel).toContainText("quickstart");
    await page.mouse.move(5, 5);
    const seen = async () => ({
      top: await grid.evaluate((element) => element.scrollTop),
      first: Math.round((await rowOf(page, "w104").boundingBox())?.y ?? 0),
      picked: await grid.locator("[aria-selected=true] b").allInnerTexts(),
      url: page.url(),
    });
    const before = await seen();
    expect(before.top).toBe(3600);
    expect(before.picked).toEqual(["w103", "w105"]);

    if (reason) between.send({ type: "reset", reason });
    const end = between.refuse(/\/changes/u, 503, "gone");
    between.cut();
    await expect(page.getByText(/^As of/u)).toBeVisible();
    expect(await seen()).toMatchObject({ top: before.top, first: before.first });
    await expect(panel).toContainText("quickstart");
    end();
    await tryNow(page);
    await expect(connection(page)).toHaveText("live");
    expect(await seen()).toEqual(before);
    await expect(page.getByRole("toolbar")).toContainText("2 of 200 picked");
    await expect(rowOf(page, "w104")).toHaveAttribute("aria-current", "true");
    await expect(pane.getByRole("tab", { name: "Details" })).toHaveAttribute(
      "aria-selected",
      "true",
    );
    await expect(panel).toContainText("quickstart");
  });
}

test("a row that was scrolled away holds nothing, and Tab leads to one on the screen", async ({
  page,
  crowd,
  inFrontOf,
}) => {
  const between = await inFrontOf(crowd);
  const frames = framesOf(between);
  await logIn(page, crowd, between);
  await page.goto(`${between.url}/workloads`);
  await nameAt(page, 0).click();
  await page.getByRole("grid").hover();
  await page.mouse.wheel(0, 3000);
  await expect(nameAt(page, 0)).toBeHidden();
  const stops = page.locator("[role=grid] [role=row] [tabindex='0']");
  await expect(stops).toHaveCount(1);
  await expect(stops).toBeInViewport();
  // Away with the pointer, and back to the top: the order follows again.
  await page.mouse.wheel(0, -6000);
  await page.getByRole("navigation").hover();
  const first = await nameAt(page, 0).innerText();
  between.send(madeAt(frames.get(first), "new-1", 1));
  await expect(nameAt(page, 0)).toHaveText("new-1");
});
