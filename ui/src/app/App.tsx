// Which page is at which address, and who may see any.
import { lazy, Suspense, useEffect, useState } from "react";
import { I18nProvider, RouterProvider } from "react-aria-components";
import { Redirect, Route, Switch, useLocation } from "wouter";

import { pageSecret } from "../api/http";
import { useSession } from "../api/session";
import { Dialog } from "../kit/Dialog";
import { Empty, Failure } from "../kit/States";
import { startLive, useConnection } from "../live/client";
import { ChangePassword, Login } from "../login/Login";
import { Frame } from "./Frame";

const Overview = lazy(() => import("../overview/Overview"));
const Workloads = lazy(() => import("../workloads/Workloads"));
const NewWorkload = lazy(() => import("../new-workload/NewWorkload"));
const Projects = lazy(() => import("../projects/Projects"));
const Nodes = lazy(() => import("../nodes/Nodes"));
const Assets = lazy(() => import("../assets/Assets"));

export function App(): React.ReactNode {
  const { info, failed, again } = useSession();
  const [, navigate] = useLocation();
  const locale = navigator.language;
  const user = info && !info.mustChangePassword ? info.principal : undefined;
  useEffect(() => {
    if (user) startLive(pageSecret());
  }, [user]);
  let page: React.ReactNode = null;
  if (failed) page = <Failure error={failed} onRetry={again} />;
  else if (info === null) page = <Login />;
  else if (info?.mustChangePassword) page = <ChangePassword />;
  else if (info) page = <Pages />;
  return (
    <I18nProvider locale={locale}>
      <RouterProvider navigate={navigate}>{page}</RouterProvider>
    </I18nProvider>
  );
}

function Pages(): React.ReactNode {
  const { ended } = useSession();
  const loggedOut = useConnection().state === "logged-out";
  return (
    <Frame>
      <Suspense fallback={null}>
        <Switch>
          <Route path="/">
            <Redirect to="/overview" replace />
          </Route>
          <Route path="/login">
            <Redirect to="/overview" replace />
          </Route>
          <Route path="/overview" component={Overview} />
          <Route path="/workloads/new/training" component={NewWorkload} />
          <Route path="/workloads/:id?/:tab?" component={Workloads} />
          <Route path="/projects/:name?" component={Projects} />
          <Route path="/nodes/:name?" component={Nodes} />
          <Route path="/assets/:kind" component={Assets} />
          <Route>
            <Empty title="There is no page at this address">
              <p className="muted">The menu at the left shows what there is.</p>
            </Empty>
          </Route>
        </Switch>
      </Suspense>
      {(ended || loggedOut) && <LogInAgain />}
    </Frame>
  );
}

/** The session ended while the page is open: the page below stays, with what was typed. */
function LogInAgain(): React.ReactNode {
  const [isOpen, setOpen] = useState(true);
  return (
    <Dialog title="Log in again" isOpen={isOpen} onClose={() => setOpen(false)}>
      <p className="muted">The session ended. What you typed on this page is kept.</p>
      <Login isEmbedded />
    </Dialog>
  );
}
