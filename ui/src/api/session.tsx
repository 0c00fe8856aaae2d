// The session: the user who is logged in, and the user's rights.
import { createContext, use, useCallback, useEffect, useMemo, useState } from "react";

import { ApiError, get, keepPageSecret, listenToSession, pageSecret, request } from "./http";
import { type Action, may, type Place, type SessionInfo } from "./rights";

interface Session {
  /** Undefined while it is loaded, null without a login. */
  info: SessionInfo | null | undefined;
  /**
   * Times that a request told that the session has ended while the page was open, 0 with a session:
   * forms on the page are kept.
   */
  ended: number;
  failed: ApiError | undefined;
  logIn: (body: { username: string; password: string } | { once: string }) => Promise<SessionInfo>;
  logOut: (everywhere: boolean) => Promise<void>;
  again: () => void;
}

const Context = createContext<Session | undefined>(undefined);

/** Secret after `#once=` in a link. */
export function linkSecret(): string | undefined {
  return /^#once=(.+)$/u.exec(location.hash)?.[1];
}

/** The session of this page. */
export function useSession(): Session {
  const session = use(Context);
  if (!session) throw new Error("outside of a session");
  return session;
}

/** True if the caller has an action on a resource at a place, or without one in some scope. */
export function useMay(resource: string, action: Action, place?: Place): boolean {
  return may(useSession().info, resource, action, place);
}

export function SessionProvider({ children }: { children: React.ReactNode }): React.ReactNode {
  const [info, setInfo] = useState<SessionInfo | null>();
  const [ended, setEnded] = useState(0);
  const [failed, setFailed] = useState<ApiError>();

  const again = useCallback(() => {
    setFailed(undefined);
    // A page that was open with a session stays, with what was typed, until one logs in again.
    const end = () => {
      setInfo((was) => was ?? null);
      setEnded((times) => times + 1);
    };
    // A link logs in the user for whom it was made, also if another user is logged in.
    if (pageSecret() === null || linkSecret() !== undefined) {
      setInfo(null);
      return;
    }
    get<SessionInfo>("/elastane/v1/session").then(
      (found) => {
        setInfo(found);
        setEnded(0);
      },
      (error: ApiError) => {
        if (error.status === 401 || error.status === 403) end();
        else setFailed(error);
      },
    );
  }, []);

  useEffect(() => {
    const onEnded = () => setEnded((times) => times + 1);
    listenToSession({ onEnded, onForbidden: again, onOtherTab: again });
    again();
  }, [again]);

  const logIn = useCallback<Session["logIn"]>(async (body) => {
    const found = await request<SessionInfo>("POST", "/elastane/v1/session", body);
    keepPageSecret(found.pageSecret ?? null);
    setInfo(found);
    setEnded(0);
    return found;
  }, []);

  const logOut = useCallback(async (everywhere: boolean) => {
    try {
      await request("DELETE", `/elastane/v1/session${everywhere ? "?everywhere=true" : ""}`);
    } catch (error) {
      // A session that has ended is none to end.
      if (!(error instanceof ApiError && error.status === 401)) throw error;
    }
    keepPageSecret(null);
    setEnded(0);
    setInfo(null);
  }, []);

  const session = useMemo(
    () => ({ info, ended, failed, logIn, logOut, again }),
    [info, ended, failed, logIn, logOut, again],
  );
  return <Context value={session}>{children}</Context>;
}
