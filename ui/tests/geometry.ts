// Where things lie: nothing beside the screen, in either direction, and nothing that moves by itself.
import { expect, type Page } from "./fixture";

const WIDE = { width: 1440, height: 900 };
// The width is what the layout goes by: that of zoom 400 % is the same, and 4K has room.
const NARROW = { width: 320, height: 640 };

/** Pixels by which the page is wider than the screen. */
export async function sideways(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/** The number of animations. */
export async function movements(page: Page): Promise<number> {
  return page.evaluate(() => document.getAnimations().length);
}

const turn = (page: Page, dir: string) =>
  page.evaluate((given) => {
    document.documentElement.dir = given;
  }, dir);

/** A view fits a wide and a narrow screen, from left to right and from right to left. */
export async function fits(page: Page, view: string): Promise<void> {
  for (const dir of ["ltr", "rtl"]) {
    // First the size: what is moved at once after it is no shift of the layout by itself.
    await page.setViewportSize(WIDE);
    await turn(page, dir);
    expect([view, dir, await movements(page), await sideways(page)]).toEqual([view, dir, 0, 0]);
    // The pane and sheets are at the end of the line.
    const atEnd = page.locator("main :not([data-page]) > [aria-label^='Workload w']");
    const box = (await atEnd.isVisible()) && (await atEnd.boundingBox());
    if (box) expect([view, dir, box.x < WIDE.width / 2]).toEqual([view, dir, dir === "rtl"]);
    await page.setViewportSize(NARROW);
    // An open menu is placed again when the page has another size.
    await expect.poll(() => sideways(page), `${view}, ${dir}`).toBe(0);
  }
  await page.setViewportSize(WIDE);
  await turn(page, "ltr");
}
