// How live the page is, and what to do when it is not.
import { useEffect, useState } from "react";

import { Button } from "../kit/Button";
import { Clock, setServerTime, useAtServer } from "../kit/time";
import { connectionLostAt, retryLive, useConnection, useServer } from "../live/client";
import type { Connection } from "../live/protocol";
import css from "./frame.module.css";

function text(connection: Connection): string {
  switch (connection.state) {
    case "live":
      return "live";
    case "connecting":
      return "connecting";
    case "catching-up":
      return `catching up (${connection.objects})`;
    case "waiting":
      return "reconnecting";
    case "logged-out":
      return "logged out";
  }
}

export function ConnectionState(): React.ReactNode {
  const connection = useConnection();
  const server = useServer();
  const now = server?.now;
  useEffect(() => {
    if (now) setServerTime(now);
  }, [now]);
  const announced = useSlow(text(connection));
  return (
    <>
      <span className={css.live} data-state={connection.state}>
        {text(connection)}
      </span>
      <output className="visually-hidden">{announced}</output>
    </>
  );
}

/** The newest value, at most each five seconds: a screen reader is not to be flooded. */
function useSlow(value: string): string {
  const [slow, setSlow] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(value), 5000);
    return () => clearTimeout(timer);
  }, [value]);
  return slow;
}

/** True if the server has another version of the page. `make ui-dev` shows none of a server. */
function isOther(served: string | undefined): boolean {
  return !import.meta.env.DEV && served !== undefined && served !== import.meta.env.UI_DIGEST;
}

/** Notices of faults that make the page untrue: no connection, no Docker, another version. */
export function Notices(): React.ReactNode {
  const connection = useConnection();
  const server = useServer();
  const lostAt = connectionLostAt();
  const asOf = useAtServer(lostAt);
  return (
    // Over the page: the text under it does not move when the connection comes and goes.
    <div className={css.notices}>
      {connection.state === "waiting" && (
        <Notice action={{ name: "Try now", run: retryLive }}>
          {lostAt > 0 && (
            <>
              As of <Clock at={asOf} isStop />:{" "}
            </>
          )}
          {connection.why}
        </Notice>
      )}
      {server?.outage && (
        <Notice>
          {server.outage.message} since <Clock at={server.outage.since} isStop />
        </Notice>
      )}
      {isOther(server?.interface) && (
        <Notice action={{ name: "Reload", run: () => location.reload() }}>
          The server is version {server?.version} now. Reload to use it. What you typed is kept.
        </Notice>
      )}
    </div>
  );
}

interface NoticeProps {
  children: React.ReactNode;
  action?: { name: string; run: () => void };
}

function Notice({ children, action }: NoticeProps): React.ReactNode {
  return (
    <div className={css.notice} role="status">
      <span>{children}</span>
      {action && <Button onPress={action.run}>{action.name}</Button>}
    </div>
  );
}
