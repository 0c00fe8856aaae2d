// Pages by address, and the login before them.
import { Suspense, useEffect, useState } from "react";
import { I18nProvider, RouterProvider } from "react-aria-components";
import { Redirect, Route, Switch, useLocation } from "wouter";

import { pageSecret } from "../api/http";
import { useSession } from "../api/session";
import { Boundary, page } from "../kit/Boundary";
import { Dialog } from "../kit/Dialog";
import { Failure, NoPage, Skeleton, Waiting } from "../kit/States";
import { onAccessChanged, startLive, useConnection } from "../live/client";
import { ChangePassword, Login } from "../login/Login";
import { WORKLOAD_PAGE } from "../live/address";
import { Answers } from "./Answers";
import { Frame } from "./Frame";

const Overview = page(() => import("../overview/Overview"));
const Workloads = page(() => import("../workloads/Workloads"));
const ByName = page(() => import("../workloads/ByName"));
const NewWorkload = page(() => import("../new-workload/NewWorkload"));
const Projects = page(() => import("../projects/Projects"));
const Nodes = page(() => import("../nodes/Nodes"));
const CodePage = page(() => import("../codes/CodePage"));
const Assets = page(() => import("../assets/Assets"));
/** Needs no server, and is left out of the built interface. */
const KitPage = import.meta.env.DEV ? page(() => import("../kit-page/KitPage")) : undefined;

export function App(): React.ReactNode {
  const { info, failed, again } = useSession();
  const [place, navigate] = useLocation();
  const locale = navigator.language;
  const secret = info && !info.mustChangePassword ? pageSecret() : undefined;
  useEffect(() => {
    if (secret !== undefined) startLive(secret);
  }, [secret]);
  useEffect(() => onAccessChanged(again), [again]);
  let shown: React.ReactNode = <Waiting />;
  if (KitPage && place === "/kit") {
    shown = (
      <Suspense>
        <KitPage />
      </Suspense>
    );
  } else if (info === null) shown = <Login />;
  else if (info?.mustChangePassword) shown = <ChangePassword />;
  else if (info) shown = <Pages />;
  else if (failed) shown = <Failure error={failed} onRetry={again} />;
  return (
    <I18nProvider locale={locale}>
      <RouterProvider navigate={navigate}>
        {/* Nothing that one user asked for is shown to the next. */}
        <Answers key={info ? `${info.principal.kind} ${info.principal.name}` : ""}>{shown}</Answers>
      </RouterProvider>
    </I18nProvider>
  );
}

function Pages(): React.ReactNode {
  const { ended } = useSession();
  const [place] = useLocation();
  const loggedOut = useConnection().state === "logged-out";
  // The user put it off at this count: the next request that needs a session asks again.
  const [later, setLater] = useState<number>();
  const isOut = ended > 0 || loggedOut;
  if (!isOut && later !== undefined) setLater(undefined);
  return (
    <Frame onLogIn={isOut ? () => setLater(undefined) : undefined}>
      <Boundary place={place}>
        <Suspense fallback={<Skeleton rows={4} height={80} />}>
          <Switch>
            <Route path="/">
              <Redirect to="/overview" replace />
            </Route>
            <Route path="/login">
              <Redirect to="/overview" replace />
            </Route>
            <Route path="/overview" component={Overview} />
            <Route path="/workloads/new/training" component={NewWorkload} />
            <Route path={WORKLOAD_PAGE} component={Workloads} />
            <Route path="/workloads/:id?/:tab?" component={Workloads} />
            <Route path="/w/:project/:name" component={ByName} />
            <Route path="/projects/:name?" component={Projects} />
            <Route path="/nodes/:name?" component={Nodes} />
            <Route path="/assets/:kind" component={Assets} />
            <Route path="/codes/:code" component={CodePage} />
            <Route component={NoPage} />
          </Switch>
        </Suspense>
      </Boundary>
      {/* The session ended while the page is open: the page below stays, with what was typed. */}
      <Dialog
        title="Log in again"
        isOpen={isOut && later !== ended}
        onClose={() => setLater(ended)}
      >
        <p className="muted">The session ended. What you typed on this page is kept.</p>
        <Login isEmbedded />
      </Dialog>
    </Frame>
  );
}
