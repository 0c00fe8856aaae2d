// How live the page is, and what to do when it is not.
import { useEffect } from "react";

import { Button } from "../kit/Button";
import { Popup } from "../kit/Popup";
import { useThrottled } from "../kit/throttle";
import { Clock, SecondsTo, setServerTime, useAtServer } from "../kit/time";
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

/** A screen reader is not to be flooded. */
const ANNOUNCED_MS = 5000;

export function ConnectionState(): React.ReactNode {
  const connection = useConnection();
  const server = useServer();
  const now = server?.now;
  useEffect(() => {
    if (now) setServerTime(now);
  }, [now]);
  const why = connection.state === "waiting" ? `, ${connection.why}` : "";
  const announced = useThrottled(text(connection) + why, ANNOUNCED_MS);
  return (
    <>
      <Popup
        title="Connection"
        label={
          <span className={css.live} data-state={connection.state}>
            {text(connection)}
          </span>
        }
      >
        <Details connection={connection} />
      </Popup>
      <output className="visually-hidden">{announced}</output>
    </>
  );
}

function Details({ connection }: { connection: Connection }): React.ReactNode {
  const server = useServer();
  const lostAt = connectionLostAt();
  const asOf = useAtServer(lostAt);
  return (
    <dl className={css.about}>
      <div>
        <dt>Connection</dt>
        <dd>{connection.state === "waiting" ? connection.why : text(connection)}</dd>
      </div>
      {connection.state === "waiting" && (
        <div>
          <dt>Reconnecting</dt>
          <dd>
            in <SecondsTo at={connection.retryAt} />
          </dd>
        </div>
      )}
      {lostAt > 0 && (
        <div>
          <dt>As of</dt>
          <dd>
            <Clock at={asOf} seconds />
          </dd>
        </div>
      )}
      {server && (
        <div>
          <dt>Containers</dt>
          <dd>
            {server.outage ? (
              <>
                {server.outage.message} since <Clock at={server.outage.since} />
              </>
            ) : (
              "no outage"
            )}
          </dd>
        </div>
      )}
    </dl>
  );
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
        // The state in the header is announced, not this as well.
        <Notice isSilent action={{ name: "Try now", run: retryLive }}>
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
  isSilent?: boolean;
  action?: { name: string; run: () => void };
}

function Notice({ children, isSilent, action }: NoticeProps): React.ReactNode {
  return (
    <div className={css.notice} role={isSilent ? undefined : "status"}>
      <span>{children}</span>
      {action && <Button onPress={action.run}>{action.name}</Button>}
    </div>
  );
}
