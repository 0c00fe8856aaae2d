// The fixture itself: it reports forbidden requests and errors of every page, also of one that a test opens.
import { connection, expect, logIn, test, type Watch } from "./fixture";

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

/** Waits for such a report of the worker that reads the stream. */
async function reported(watch: Watch, fault: string): Promise<void> {
  const text = `console: live worker: ${fault}`;
  const found = () => watch.faults.filter((one) => one.startsWith(text));
  await expect.poll(() => found().length).toBeGreaterThan(0);
}

test("an error of the worker that reads the stream is reported", async ({
  page,
  server,
  between,
  watch,
}) => {
  await logIn(page, server, between);
  await expect(connection(page)).toHaveText("live");
  expect(watch.faults).toEqual([]);
  // Reading this change fails, and the connection with it.
  between.send({ type: "changed", kind: "workload", id: "none" });
  await reported(watch, "TypeError: Cannot read properties of undefined");
  await expect(connection(page)).toHaveText("live");
  // Nothing catches the error of counting this one.
  const object = { id: "none", name: "none", phase: "Pending", why: "no reason" };
  between.send({ type: "changed", kind: "workload", id: "none", object });
  await reported(watch, "TypeError: Cannot use 'in' operator");
  await page.close();
  watch.faults.length = 0;
});

test("a request of that worker to another host is reported", async ({
  page,
  server,
  between,
  watch,
}) => {
  await logIn(page, server, between);
  await expect(connection(page)).toHaveText("live");
  expect(watch.faults).toEqual([]);
  between.rule((asked, answer) => {
    if (!asked.url?.startsWith("/elastane/v1/changes")) return false;
    answer.writeHead(307, { location: "http://other.invalid/" }).end();
    return true;
  });
  between.cut();
  await reported(watch, "refused by the policy: connect-src");
  await page.close();
  watch.faults.length = 0;
});
