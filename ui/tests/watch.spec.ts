// The fixture itself: it reports forbidden requests and errors of every page, also of one that a test opens.
import { expect, test } from "./fixture";

test("a page of a context that a test opens itself is watched", async ({
  browser,
  server,
  watch,
}) => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${server.url}/login`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(watch.faults).toEqual([]);
  await page.evaluate(async () => {
    console.error("said aloud");
    await fetch("http://other.invalid/").catch(() => undefined);
    document.body.style.marginTop = "600px";
  });
  for (const told of [/^console: said/u, /^policy: connect-src http:..other/u, /^layout shift/u]) {
    await expect.poll(() => watch.faults.filter((one) => told.test(one)).length).toBeGreaterThan(0);
  }
  watch.faults.length = 0;
  await context.close();
});

test("a request to another host is reported", async ({ browser, server, watch }) => {
  // Where the policy of our pages does not refuse it.
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  await page.goto(`${server.url}/login`);
  await expect(page.getByRole("heading", { name: "Log in" })).toBeVisible();
  expect(watch.faults).toEqual([]);
  await page.evaluate(() => void fetch("http://other.invalid/").catch(() => undefined));
  const told = /^another host: http:..other/u;
  await expect.poll(() => watch.faults.filter((one) => told.test(one)).length).toBeGreaterThan(0);
  await context.close();
  watch.faults.length = 0;
});
