// The state of the connection in the header: its details, and its announcements to screen readers.
import { connection, expect, logIn, test } from "./fixture";

test("the state of the connection has details: since when, until when, and an outage", async ({
  page,
  server,
  between,
}) => {
  const message = "Docker does not answer";
  between.rewrite = (frame) => {
    const outage = { message, since: new Date().toISOString() };
    return frame.kind === "server" && frame.object
      ? [{ ...frame, object: { ...frame.object, outage } }]
      : [frame];
  };
  await logIn(page, server, between);
  await page.getByRole("banner").getByRole("button", { name: "live" }).click();
  const details = page.getByRole("dialog", { name: "Connection" });
  await expect(details).toContainText(new RegExp(`${message} since \\d`, "u"));
  await expect(details).not.toContainText("Reconnecting");
  await page.keyboard.press("Escape");
  await expect(details).toBeHidden();
  const mend = between.refuse(/^\/elastane\/v1\/changes/u, 503, "not now");
  between.cut();
  await page.getByRole("banner").getByRole("button", { name: "reconnecting" }).click();
  await expect(details).toContainText("the server answers 503");
  await expect(details).toContainText(/Reconnectingin \d+ s/u);
  await expect(details).toContainText(/As of\d/u);
  mend();
  await expect(details).not.toContainText("Reconnecting");
});

test("a connection that flaps is announced, but at most each five seconds", async ({
  page,
  server,
  between,
}) => {
  await logIn(page, server, between);
  const region = page.getByRole("banner").getByRole("status");
  await expect(connection(page)).toHaveText("live");
  await expect(region).toHaveText("live");
  await region.evaluate((element) => {
    const heard: { text: string | null; at: number }[] = [];
    Object.assign(globalThis, { heard });
    new MutationObserver(() => {
      heard.push({ text: element.textContent, at: performance.now() });
    }).observe(element, { childList: true, characterData: true, subtree: true });
  });
  // Each time before the five seconds of a state are over.
  for (let times = 0; times < 4; times += 1) {
    between.cut();
    await expect(connection(page)).toHaveText("reconnecting");
    await expect(connection(page)).toHaveText("live");
  }
  const heard = () =>
    page.evaluate(() => (globalThis as unknown as { heard: { text: string; at: number }[] }).heard);
  await expect.poll(async () => (await heard()).length).toBeGreaterThan(1);
  const all = await heard();
  expect(all[0]?.text).toMatch(/^reconnecting/u);
  const spans = all.slice(1).map(({ at }, n) => at - (all[n]?.at ?? 0));
  for (const span of spans) expect(span).toBeGreaterThan(4900);
});
