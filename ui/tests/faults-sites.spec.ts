// Pages of others that use the session of a browser: other sites, workloads at sibling hosts.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  type BrowserContext,
  expect,
  goTo,
  type Page,
  rowOf,
  test,
  UNANSWERED,
  type Watch,
} from "./fixture";
import { freePort, type Server } from "./server";
import { ports } from "./ports";

/** A page at an address of its own, which has the browser do what the script says. */
async function elsewhere(host: string, html: string): Promise<{ url: string; close: () => void }> {
  const http = createServer((_, answer) => {
    answer.writeHead(200, { "content-type": "text/html" });
    answer.end(html);
  });
  return new Promise((resolve) => {
    http.listen(0, "127.0.0.1", () => {
      const address = http.address();
      const port = typeof address === "object" && address ? address.port : 0;
      ports.add(port);
      resolve({ url: `http://${host}:${port}/`, close: () => http.close() });
    });
  });
}

/** Posts, embeds and opens our page, and writes into its title what it saw of it. */
function attack(url: string): string {
  return `<!doctype html><title>waits</title><iframe id="frame" src="${url}/overview"></iframe><script>
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

/** What is attacked: a page of a server that is logged in, and a project that it shows. */
interface Attacked {
  page: Page;
  server: Server;
  team: { name: string };
  context: BrowserContext;
  watch: Watch;
}

/** Lets the page at an address attack ours, and checks that it gets nothing. */
async function attackFrom(
  address: string,
  { page, server, team: { name: made }, context, watch }: Attacked,
): Promise<void> {
  watch.expectError(/CORS policy|frame-ancestors|Cross-Origin|X-Frame/iu);
  const asked = /^\/(api\/v1\/org-unit\/projects|elastane\/v1\/session)$/u;
  watch.expectFailure(asked, 401, UNANSWERED);
  const other = await context.newPage();
  await other.goto(address);
  const closed = "post:opaque secret:refused read:refused frame:closed opened:closed";
  await expect(other).toHaveTitle(closed);
  // The page that was opened is ours. It works, and its opener cannot steer it.
  await expect.poll(() => context.pages().length).toBe(3);
  const [opened] = context.pages().filter((one) => one !== page && one !== other);
  if (!opened) throw new Error("no page was opened");
  await expect(opened.getByRole("heading", { name: "Overview" })).toBeVisible();
  expect(await opened.evaluate(() => window.opener)).toBeNull();
  await goTo(page, "Projects");
  await expect(rowOf(page, made)).toBeVisible();
  await expect(rowOf(page, "stolen")).toBeHidden();
  const known = await server.api<{ projects: { name: string }[] }>(
    "GET",
    "/api/v1/org-unit/projects",
  );
  const names = known.projects.map(({ name }) => name);
  expect(names).toContain(made);
  expect(names).not.toContain("stolen");
}

for (const [who, host] of [
  ["a page of another site", "localhost"],
  // Sites do not differ by their ports: the cookie is sent.
  ["a page at another port of the same host", "127.0.0.1"],
] as const) {
  test(`${who} that posts, embeds, opens`, async ({ app: page, server, team, context, watch }) => {
    const site = await elsewhere(host, attack(server.url));
    await attackFrom(site.url, { page, server, team, context, watch });
    site.close();
  });
}

test("a page of a workload at a sibling host that posts, embeds, opens", async ({
  page,
  server,
  team,
  context,
  watch,
}) => {
  // At the name of the server below which the hosts of its workloads are.
  const ours = server.url.replace("127.0.0.1", "localhost");
  const port = await freePort();
  const folder = served(attack(ours));
  await server.submit(team.id, "evil", {
    command: "python3",
    args: `-m http.server ${port} --bind 127.0.0.1 --directory ${folder}`,
    exposedUrls: [{ container: port, name: "page", authorizationType: "public" }],
  });
  await page.goto(await server.link(ours));
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
  const address = `http://evil--${team.name}--${port}.localhost:${server.port}/`;
  await expect.poll(() => statusOf(address, server.port)).toBe(200);
  await attackFrom(address, { page, server, team, context, watch });
  rmSync(folder, { recursive: true });
});

/** The status of an address whose name this machine may not resolve, as browsers do. */
function statusOf(address: string, port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { host: new URL(address).host };
    get({ host: "127.0.0.1", port, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on("error", reject);
  });
}

/** A folder with a page that every user may read: workloads run as users of their own. */
function served(html: string): string {
  const folder = mkdtempSync(join(tmpdir(), "elastane-ui-page-"));
  writeFileSync(join(folder, "index.html"), html);
  chmodSync(folder, 0o755);
  return folder;
}
