// No violation of axe on any page, tab, dialog or state, light and dark, with 200 workloads; and each
// page, tab and dialog fits 320 pixels, from right to left as well, with reduced motion.
// Each is opened once and looked at in all of these: to open one takes longer than to look at it.
import { AxeBuilder } from "./axe";
import { expect, type Locator, logIn, type Page, rowOf, test, tryNow } from "./fixture";
import { fits } from "./geometry";
import { ask, at, type At, DIALOGS, heading, OTHERS, PAGES, press, TABS, type View } from "./views";

/** Opens one view after the other, and looks at each. */
async function check(
  views: View[],
  where: At,
  look: (page: Page, view: string) => Promise<void> = async () => {},
): Promise<void> {
  for (const [name, open] of views) {
    await test.step(name, async () => {
      await open(where);
      for (const colorScheme of ["light", "dark"] as const) {
        // A colour that fades from one to the other is none of either.
        await where.page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await expect(where.page.locator("html")).toHaveAttribute("data-theme", colorScheme);
        const found = await new AxeBuilder(where.page).violations();
        expect([name, colorScheme, found]).toEqual([name, colorScheme, []]);
      }
      await look(where.page, name);
    });
  }
}

/** Fills a form outside of the frame, and has it refused. */
async function submit(page: Page, button: string, fields: Record<string, string>): Promise<void> {
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
  await press(page, button);
  await expect(page.getByRole("alert")).toBeVisible();
}

const title = (page: Page, name: string) =>
  expect(page.getByRole("heading", { name, level: 1 })).toBeVisible();

/** Opens the tabs of the pane of a workload that waits, and waits for what each shows. */
const tabsOf = (
  state: string,
  tabs: string[],
  shown: (pane: Locator) => Locator,
  open: View[1] = at("/workloads?q=w199", "w199"),
): View[] =>
  tabs.map((tab) => [
    `${tab}, ${state}`,
    async (where) => {
      await open(where);
      const pane = where.page.getByRole("region", { name: "Workload w199" });
      if (await pane.isHidden()) await rowOf(where.page, "w199").click();
      await pane.getByRole("tab", { name: tab }).click();
      await expect(shown(pane).first()).toBeVisible();
    },
  ]);

/** Tabs of which the server is asked when they are shown. */
const ASKED = ["Explain", "Event history", "Details"];

/** Every page in a state that all of them share. */
const everyPage = (state: string, shown: string | RegExp): View[] =>
  PAGES.map(([name, path]) => [`${name}, ${state}`, at(path, shown)]);

const GROUPS: [name: string, views: View[]][] = [
  ["page", [...PAGES.map(([name, path, shown]): View => [name, at(path, shown)]), ...OTHERS]],
  ["tab", TABS],
  ["dialog or menu", DIALOGS],
];

for (const [name, views] of GROUPS) {
  test(`no violation on any ${name}, and it fits 320 pixels in both directions`, async ({
    page,
    crowd,
    watch,
  }) => {
    watch.allowFailure(/\/workloads\/none\/events$/u, 404);
    await logIn(page, crowd);
    await check(views, { page, url: crowd.url }, fits);
  });
}

test("no violation before one is logged in, and without a role", async ({ page, crowd, watch }) => {
  const url = crowd.url;
  watch.expectFailure(/^\/elastane\/v1\/session$/u, 401);
  watch.expectFailure(/^\/api\/v1\/me\/password$/u, 400);
  const user = "norole@example.com";
  const given = await crowd.newUser(user);
  await check(
    [
      ["the login", at("/overview", "Log in")],
      ["the login, refused", () => submit(page, "LOG IN", { User: user, Password: "wrong" })],
    ],
    { page, url },
  );
  await page.getByLabel("Password").fill(given);
  await press(page, "LOG IN");
  const choice = { "Current password": given, "New password": "short" };
  await check(
    [
      ["a new password", () => title(page, "Choose a password")],
      ["a new password, refused", () => submit(page, "CHANGE PASSWORD", choice)],
    ],
    { page, url },
  );
  await page.getByLabel("New password").fill("correct horse battery");
  await press(page, "CHANGE PASSWORD");
  await expect(page.getByText("No role here")).toBeVisible();
  const form: View = ["the form, no right", at("/workloads/new/training", "No role here")];
  await check([...everyPage("no right", "No role here"), form], { page, url });
});

test("no violation after an upgrade, or on a workload that stopped", async ({
  page,
  crowd,
  inFrontOf,
  watch,
}) => {
  const between = await inFrontOf(crowd);
  const other = { version: "9.9.9", interface: "0".repeat(64) };
  between.rewrite = (frame) => {
    if (frame.kind === "server") return [{ ...frame, object: { ...frame.object, ...other } }];
    const isLast = frame.kind === "workload" && frame.object?.name === "w199";
    return [isLast ? { ...frame, object: { ...frame.object, phase: "Stopped" } } : frame];
  };
  watch.expectFailure(/^\/_ui\/Nodes-/u, 404);
  watch.expectError(/Failed to fetch dynamically imported module/u);
  between.refuse(/^\/_ui\/Nodes-/u, 404, "there is no such file");
  await logIn(page, crowd, between);
  await check(
    [
      ["the notice of an upgrade", at("/overview", "The server is version 9.9.9 now")],
      ["a missing file", at("/nodes", "A file of this page is missing")],
      ask("RUN", "q=w199"),
    ],
    { page, url: between.url },
  );
});

test("no violation while loading", async ({ page, crowd, inFrontOf }) => {
  const between = await inFrontOf(crowd);
  const release = Promise.withResolvers<boolean>();
  await logIn(page, crowd, between);
  const where = { page, url: between.url };
  // Drawn a little later; a grid says so by itself.
  const drawn = "[aria-hidden=true][style*='opacity: 1'], [aria-busy=true]";
  between.rule(async ({ url }) => /v1\/workloads\/[^?]/u.test(url ?? "") && release.promise);
  await check(
    tabsOf("loading", ASKED, (pane) => pane.locator(drawn)),
    where,
  );
  between.rule(async ({ url }) => url?.includes("/v1/changes") === true && release.promise);
  await check(
    PAGES.map(([name, path]): View => [
      `${name}, loading`,
      async () => {
        await page.goto(between.url + path);
        await heading(page, name);
        await expect(page.locator(drawn).first()).toBeVisible();
      },
    ]),
    where,
  );
  release.resolve(false);
});

test("no violation where there is nothing", async ({ page, crowd, inFrontOf }) => {
  const between = await inFrontOf(crowd);
  const kept = new Set(["server", "department", "node-pool"]);
  between.rewrite = (frame) =>
    frame.type !== "changed" || kept.has(frame.kind ?? "") ? [frame] : [];
  await logIn(page, crowd, between);
  const where = { page, url: between.url };
  await check(
    [
      ["Overview, empty", at("/overview", "There is no project yet")],
      ...PAGES.slice(1).map(([name, path]): View => [`${name}, empty`, at(path, /^No /u)]),
      ["a new training, empty", at("/workloads/new/training", "There is no project in which")],
    ],
    where,
  );
});

test("no violation where nothing matches", async ({ page, crowd }) => {
  await logIn(page, crowd);
  const lists = PAGES.filter(([name]) => name !== "Overview");
  await check(
    [
      ...lists.map(([name, path]): View => [
        `${name}, nothing matches`,
        at(`${path.split("?")[0]}?q=nothing-has-this-name`, "Nothing matches"),
      ]),
      [
        "a filter, nothing matches",
        async ({ url }) => {
          await page.goto(`${url}/workloads`);
          await press(page, "Filter by Project");
          await page.getByRole("dialog").getByRole("searchbox").fill("nothing-has-this-name");
          await expect(page.getByText("Nothing matches")).toBeVisible();
        },
      ],
    ],
    { page, url: crowd.url },
  );
});

test("no violation where a tab failed, is refused or empty, or its workload is gone", async ({
  page,
  crowd,
  inFrontOf,
  watch,
}) => {
  const between = await inFrontOf(crowd);
  await logIn(page, crowd, between);
  const where = { page, url: between.url };
  watch.expectFailure(/\/v1\/workloads\//u, 500, 403);
  for (const [state, status, message] of [
    ["failed", 500, "the server has a fault"],
    ["no right", 403, "reading it needs the role Viewer"],
  ] as const) {
    const end = between.refuse(/\/v1\/workloads\/[^?]/u, status, message);
    await check(
      tabsOf(state, ASKED, (pane) => pane.getByText(message)),
      where,
    );
    end();
  }
  const empty = { events: [], next: null };
  const end = between.rule(({ url }, answer) => {
    if (!url?.includes("/events?")) return false;
    answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(empty));
    return true;
  });
  await check(
    tabsOf("empty", ["Event history"], (pane) => pane.getByText("No events of it are kept")),
    where,
  );
  end();
  const pane = page.getByRole("region", { name: "Workload w199" });
  const id = page.url().split("/workloads/")[1]?.split(/[/?]/u)[0] ?? "";
  // Another change of it would bring it back.
  between.rewrite = (frame) => (frame.id === id ? [] : [frame]);
  between.send({ type: "deleted", kind: "workload", id });
  await check(
    [["the pane, gone", () => expect(pane).toContainText("not in the list any more")]],
    where,
  );
});

test("no violation without a connection, and after the session", async ({
  page,
  crowd,
  inFrontOf,
}) => {
  const between = await inFrontOf(crowd);
  await logIn(page, crowd, between);
  await page.getByRole("link", { name: "Workloads", exact: true }).click();
  await expect(page.getByRole("rowheader").first()).toBeVisible();
  const end = between.refuse(/\/changes/u, 503, "gone");
  between.cut();
  await expect(page.getByText(/^As of/u)).toBeVisible();
  const go = (name: string) => async () => {
    await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
    await heading(page, name);
  };
  const where = { page, url: between.url };
  await check(
    [
      ...PAGES.map(([name]): View => [`${name}, stale`, go(name)]),
      ...tabsOf(
        "stale",
        ["Explain", "Event history", "Pods", "Details"],
        (pane) => pane.getByRole("tabpanel").locator("p, li, dd"),
        async () => {
          if (page.url().includes("/workloads/")) return;
          await go("Workloads")();
          await page.getByRole("searchbox").fill("w199");
        },
      ),
    ],
    where,
  );
  between.refuse(/\/changes/u, 401, "log in");
  end();
  await tryNow(page);
  await check(
    [["log in again", () => expect(page.getByRole("dialog")).toContainText("Log in again")]],
    where,
  );
});
