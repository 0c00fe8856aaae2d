// The frame around every page: header, navigation, keys.
import { Suspense, useCallback, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";

import { may } from "../api/rights";
import { useSession } from "../api/session";
import { Boundary, page } from "../kit/Boundary";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { ExactTime } from "../kit/ExactTime";
import { Menu } from "../kit/Menu";
import { Failure } from "../kit/States";
import { useConnection, useServer } from "../live/client";
import { ConnectionState, Notices } from "./ConnectionState";
import css from "./frame.module.css";
import { KEYS } from "./key-table";
import { lettersAct, setLettersAct, useKeys } from "./keys";
import { chooseTheme, type Theme, theme } from "./theme";

const Jump = page(() => import("./Jump"));

interface Place {
  to: string;
  name: string;
  /** The resource that one has to be able to read. */
  of: string;
}

const SECTIONS: { name?: string; places: Place[] }[] = [
  { places: [{ to: "/overview", name: "Overview", of: "workloads" }] },
  {
    name: "Workload manager",
    places: [
      { to: "/workloads", name: "Workloads", of: "workloads" },
      { to: "/assets/environments", name: "Environments", of: "environments" },
      { to: "/assets/compute-resources", name: "Compute resources", of: "compute-resources" },
    ],
  },
  { name: "Resources", places: [{ to: "/nodes", name: "Nodes", of: "nodes" }] },
  { name: "Organization", places: [{ to: "/projects", name: "Projects", of: "project" }] },
];

/** The name of the page at an address, for the title of the window. */
function nameOf(location: string): string {
  if (location.startsWith("/workloads/new/")) return "New training";
  if (location.startsWith("/codes/")) return location.slice("/codes/".length);
  const places = SECTIONS.flatMap((section) => section.places);
  return places.find(({ to }) => location === to || location.startsWith(`${to}/`))?.name ?? "";
}

interface Props {
  /** Opens the form to log in again, where the session ended. */
  onLogIn: (() => void) | undefined;
  children: React.ReactNode;
}

export function Frame({ onLogIn, children }: Props): React.ReactNode {
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  const showKeys = useCallback(() => setHelp(true), []);
  const [jumps, setJumps] = useState(false);
  const jump = useCallback(() => setJumps(true), []);
  useKeys({ onHelp: showKeys, onJump: jump });
  const [location, navigate] = useLocation();
  useEffect(() => {
    document.title = [nameOf(location), "Elastane"].filter(Boolean).join(" · ");
  }, [location]);
  useEffect(() => {
    if (!open) return undefined;
    const close = ({ key }: KeyboardEvent) => key === "Escape" && setOpen(false);
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [open]);
  const { info } = useSession();
  const isStale = useConnection().state === "waiting";
  // Pages that the user may not read are left out, and sections without a page.
  const sections = SECTIONS.map(({ name, places }) => ({
    name,
    places: places.filter(({ of }) => may(info, of, "read")),
  })).filter(({ places }) => places.length > 0);
  const commands = [
    ...sections.flatMap(({ places }) =>
      places.map(({ to, name }) => ({ id: to, name, what: "page", run: () => navigate(to) })),
    ),
    ...(may(info, "trainings", "create")
      ? [
          {
            id: "new",
            name: "New training",
            what: "command",
            run: () => navigate("/workloads/new/training"),
          },
        ]
      : []),
    { id: "keys", name: "Keys", what: "command", run: showKeys },
  ];
  return (
    <div className={css.frame}>
      <a href="#content" className={css.skip}>
        Skip to the page
      </a>
      <header className={css.header}>
        <span className={css.burger}>
          <Button
            kind="plain"
            aria-label="Menu"
            aria-expanded={open}
            onPress={() => setOpen((was) => !was)}
          >
            ☰
          </Button>
        </span>
        <b className={css.brand}>
          <span aria-hidden="true">◧</span> Elastane
        </b>
        <ClusterName />
        <span className={css.grow} />
        <Button kind="plain" aria-label="Jump to, Ctrl K" onPress={jump}>
          <span aria-hidden="true">⌕</span>
          <kbd className={`muted ${css.cluster}`}>Ctrl K</kbd>
        </Button>
        {onLogIn ? <Button onPress={onLogIn}>Log in</Button> : <ConnectionState />}
        <UserMenu onKeys={showKeys} />
      </header>
      <nav className={css.nav} aria-label="Main" data-open={open || undefined}>
        {sections.map(({ name, places }) => (
          <div key={name ?? ""}>
            {name && <h2>{name}</h2>}
            {places.map((place) => (
              <NavLink key={place.to} {...place} onPress={() => setOpen(false)} />
            ))}
          </div>
        ))}
      </nav>
      <main id="content" className={css.main} data-stale={isStale || undefined}>
        <Notices />
        {children}
        <ExactTime />
      </main>
      {jumps && (
        <Boundary place="jump">
          <Suspense fallback={null}>
            <Jump commands={commands} onClose={() => setJumps(false)} />
          </Suspense>
        </Boundary>
      )}
      <Keys isOpen={help} onClose={() => setHelp(false)} />
    </div>
  );
}

function NavLink({ to, name, onPress }: Place & { onPress: () => void }): React.ReactNode {
  const [location] = useLocation();
  const current = location === to || location.startsWith(`${to}/`);
  return (
    <Link href={to} onClick={onPress} aria-current={current ? "page" : undefined}>
      {name}
    </Link>
  );
}

function ClusterName(): React.ReactNode {
  const server = useServer();
  return <span className={`muted ${css.cluster}`}>{server?.clusterName}</span>;
}

const THEMES: [id: Theme, name: string][] = [
  ["light", "Light theme"],
  ["dark", "Dark theme"],
  ["system", "System theme"],
];

function UserMenu({ onKeys }: { onKeys: () => void }): React.ReactNode {
  const { info, logOut } = useSession();
  const [chosen, setTheme] = useState(theme());
  const [about, setAbout] = useState(false);
  const choose = (next: Theme) => {
    chooseTheme(next);
    setTheme(next);
  };
  const [failure, setFailure] = useState<{ error: Error; again: () => void }>();
  const out = (everywhere: boolean) => {
    setFailure(undefined);
    logOut(everywhere).catch((error: Error) => {
      setFailure({ error, again: () => out(everywhere) });
    });
  };
  const { versions, principal } = info ?? {};
  return (
    <>
      <Menu
        label={`${principal?.name ?? ""} ▾`}
        name={`Account of ${principal?.name ?? ""}`}
        kind="plain"
        actions={[
          ...THEMES.map(([id, name]) => ({
            id,
            name,
            isChosen: id === chosen,
            run: () => choose(id),
          })),
          { id: "keys", name: "Keys", keys: "?", isFirst: true, run: onKeys },
          { id: "about", name: "About", run: () => setAbout(true) },
          { id: "out", name: "Sign out", isFirst: true, run: () => out(false) },
          { id: "everywhere", name: "Sign out everywhere", run: () => out(true) },
        ]}
      />
      <Dialog
        title="Still logged in"
        isOpen={failure !== undefined}
        onClose={() => setFailure(undefined)}
      >
        {failure && <Failure error={failure.error} onRetry={failure.again} />}
      </Dialog>
      <Dialog title="About" isOpen={about} onClose={() => setAbout(false)}>
        <dl className={css.about}>
          <dt>Server</dt>
          <dd>{versions?.server}</dd>
          <dt>Interface</dt>
          <dd>
            <code>{versions?.interface.slice(0, 12)}</code>
          </dd>
        </dl>
        <p>
          <a href="/_ui/licences.txt" target="_blank" rel="noreferrer">
            Licences
          </a>
          {" · "}
          <a href="/elastane/v1/docs" target="_blank" rel="noreferrer">
            REST API
          </a>
        </p>
      </Dialog>
    </>
  );
}

function Keys({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }): React.ReactNode {
  const [letters, setLetters] = useState(lettersAct());
  const choose = (on: boolean) => {
    setLettersAct(on);
    setLetters(on);
  };
  return (
    <Dialog title="Keys" isOpen={isOpen} onClose={onClose}>
      <label>
        <input
          type="checkbox"
          checked={letters}
          onChange={(event) => choose(event.target.checked)}
        />{" "}
        Letters, <kbd>/</kbd> and <kbd>?</kbd> act on their own
      </label>
      <dl className={css.about}>
        {KEYS.map(({ keys, what }) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
