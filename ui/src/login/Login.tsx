// Logging in: with a password or a one-time link, and the change of a password that was given out.
import { useEffect, useRef, useState } from "react";

import { type ApiError, keepPageSecret, post } from "../api/http";
import { linkSecret, useSession } from "../api/session";
import { Button } from "../kit/Button";
import { TextField } from "../kit/Fields";
import { Failure } from "../kit/States";
import css from "./login.module.css";

export function Login({ isEmbedded }: { isEmbedded?: boolean }): React.ReactNode {
  const { logIn } = useSession();
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<Error>();
  const [pending, setPending] = useState(false);
  const opened = useRef(false);

  useEffect(() => {
    const secret = isEmbedded ? undefined : linkSecret();
    if (!secret || opened.current) return;
    opened.current = true;
    // The link works once: it must not stay in the history.
    history.replaceState(null, "", location.pathname);
    setPending(true);
    logIn({ once: secret }).catch((failure: Error) => {
      setError(failure);
      setPending(false);
    });
  }, [isEmbedded, logIn]);

  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setPending(true);
    setError(undefined);
    logIn({ username, password }).catch((failure: Error) => {
      setError(failure);
      setPending(false);
    });
  };
  const form = (
    <form className={css.form} onSubmit={submit}>
      <TextField
        label="User"
        value={username}
        onChange={setUsername}
        autoComplete="username"
        autoFocus
      />
      <TextField
        label="Password"
        type="password"
        value={password}
        onChange={setPassword}
        autoComplete="current-password"
      />
      {error && <Failure error={error} />}
      <Button type="submit" kind="main" isPending={pending}>
        LOG IN
      </Button>
    </form>
  );
  const whole = (
    <>
      {form}
      <p className={`muted ${css.hint}`}>
        On the machine of the server <code>elastane ui</code> opens this page logged in
        {isEmbedded && ", and this tab goes on"}.
      </p>
    </>
  );
  return isEmbedded ? whole : <Page title="Log in">{whole}</Page>;
}

export function ChangePassword(): React.ReactNode {
  const { info, logIn } = useSession();
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [error, setError] = useState<Error>();
  const [pending, setPending] = useState(false);
  const submit = async (event: React.FormEvent) => {
    event.preventDefault();
    setPending(true);
    setError(undefined);
    try {
      const body = { newPassword: next, ...(info?.byLink ? {} : { currentPassword: current }) };
      await post("/api/v1/me/password", body);
      // The change ended every session, this one as well.
      keepPageSecret(null);
      await logIn({ username: info?.principal.name ?? "", password: next });
    } catch (failure) {
      setError(failure as ApiError);
      setPending(false);
    }
  };
  return (
    <Page title="Choose a password">
      <p className="muted">
        {info?.byLink ? "This is your first password." : "The one you have was given out."}
      </p>
      <form className={css.form} onSubmit={(event) => void submit(event)}>
        {!info?.byLink && (
          <TextField
            label="Current password"
            type="password"
            value={current}
            onChange={setCurrent}
            autoComplete="current-password"
          />
        )}
        <TextField
          label="New password"
          help="8 to 1024 bytes"
          type="password"
          value={next}
          onChange={setNext}
          autoComplete="new-password"
        />
        {error && <Failure error={error} />}
        <Button type="submit" kind="main" isPending={pending}>
          CHANGE PASSWORD
        </Button>
      </form>
    </Page>
  );
}

function Page({ title, children }: { title: string; children: React.ReactNode }): React.ReactNode {
  useEffect(() => {
    document.title = `${title} · Elastane`;
  }, [title]);
  return (
    <main className={css.page}>
      <div className={css.card}>
        <p className={css.brand}>
          <span aria-hidden="true">◧</span> Elastane
        </p>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}
