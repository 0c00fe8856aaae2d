// States of a view: failed, empty, nothing matches, gone, loading, without a right.
import { useEffect, useState } from "react";

import { Button } from "./Button";
import css from "./kit.module.css";
import { Clock, useAtServer } from "./time";

/** An error, in the server's words. */
export function Failure(props: {
  error: Error;
  onRetry?: (() => void) | undefined;
  /** The name of the button, if it is not to try again. */
  retry?: string;
}): React.ReactNode {
  const { error, onRetry, retry = "Try again" } = props;
  const requestId = "requestId" in error ? (error.requestId as string | null) : null;
  const roles = "roles" in error ? (error.roles as string[]) : [];
  return (
    <div className={css.failure} role="alert">
      <p>
        {error.message}
        {requestId && <span className="muted"> · request {requestId}</span>}
      </p>
      <Roles>{roles}</Roles>
      {onRetry && <Button onPress={onRetry}>{retry}</Button>}
    </div>
  );
}

/** The time of what is shown, where nothing newer was answered; by the clock of the browser. */
export function AsOf({ at }: { at: number }): React.ReactNode {
  return (
    <p className="muted">
      As of <Clock at={useAtServer(at)} seconds />
    </p>
  );
}

interface FormerProps {
  /** Why there is nothing newer, if so. */
  error: Error | null;
  /** When the content was answered, by the clock of the browser. */
  at: number;
  onRetry: () => void;
  children: React.ReactNode;
}

/** Content of a request; after a failure below the alert, greyed, with its time. */
export function Former({ error, at, onRetry, children }: FormerProps): React.ReactNode {
  return (
    <>
      {error && (
        <>
          <Failure error={error} onRetry={onRetry} />
          <AsOf at={at} />
        </>
      )}
      <div className={css.former} data-former={error ? true : undefined}>
        {children}
      </div>
    </>
  );
}

interface EmptyProps {
  title: string;
  /** It is the whole page: its title is that of the page. */
  isPage?: boolean;
  children: React.ReactNode;
}

/** An empty page or part of one: its purpose, and the first step. */
export function Empty(props: EmptyProps): React.ReactNode {
  return (
    <div className={css.empty}>
      {props.isPage ? <h1>{props.title}</h1> : <h2>{props.title}</h2>}
      {props.children}
    </div>
  );
}

/** A list with entries of which the filters leave none. */
export function NothingMatches(props: {
  clear: string;
  onClear: () => void;
  children?: React.ReactNode;
}): React.ReactNode {
  return (
    <Empty title="Nothing matches">
      {props.children}
      <Button onPress={props.onClear}>{props.clear}</Button>
    </Empty>
  );
}

/** An object of an address is not there, or not for this user. */
export function Gone(props: {
  what: string;
  /** Another reason that is possible. */
  or?: string;
  isPage?: boolean;
  children?: React.ReactNode;
}): React.ReactNode {
  return (
    <Empty title={`There is no ${props.what}`} isPage={props.isPage === true}>
      <p className="muted">It was deleted, {props.or}or your roles do not allow you to see it.</p>
      {props.children}
    </Empty>
  );
}

/** There is no page at the address. */
export function NoPage(): React.ReactNode {
  return (
    <Empty isPage title="There is no page at this address">
      <p className="muted">The menu at the left shows what there is.</p>
    </Empty>
  );
}

interface NoRightProps {
  /** What is not shown, in words. */
  what: string;
  /** The reader, as `elastane access-rule create` takes it. */
  who: string;
  /** The roles that allow it, as far as they are known. */
  roles: string[];
  /** Why they are not known. */
  problem?: string | undefined;
}

/** The roles of which one is enough; nothing where none is known. */
function Roles({ children: roles }: { children: string[] }): React.ReactNode {
  return (
    roles.length > 0 && (
      <p className="muted">
        {roles.length === 1 ? "This role allows it" : "One of these roles allows it"} in the
        cluster, department or project for which it is given: {roles.join(", ")}.
      </p>
    )
  );
}

/** A role is missing: which ones would do, and where, and how one is given. */
export function NoRight({ what, who, roles, problem }: NoRightProps): React.ReactNode {
  return (
    <Empty isPage title="No role here">
      <p className="muted">Your roles do not allow you to see {what}.</p>
      <Roles>{roles}</Roles>
      {problem && <p className="muted">The roles that allow it could not be read: {problem}</p>}
      <p className="muted">An administrator gives one with</p>
      <Command text={`elastane access-rule create ${who} --role ROLE --project PROJECT`} />
      <p className="muted">
        In place of <code>--project PROJECT</code> stands <code>--department DEPARTMENT</code> or{" "}
        <code>--everywhere</code>, if it is to count there.
      </p>
    </Empty>
  );
}

/** True once so much time has passed: what is there soon needs no sign that it is awaited. */
function useLater(ms: number): boolean {
  const [is, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), ms);
    return () => clearTimeout(timer);
  }, [ms]);
  return is;
}

/** The whole page, until it is known who is logged in. */
export function Waiting(): React.ReactNode {
  return (
    useLater(700) && (
      <Empty isPage title="Waiting for the server">
        {null}
      </Empty>
    )
  );
}

/** Grey rows in the final geometry; nothing at all for the first 150 ms. */
export function Skeleton({
  rows,
  height = 14,
}: {
  rows: number;
  height?: number;
}): React.ReactNode {
  const shown = useLater(150);
  return (
    <div aria-hidden="true" style={{ display: "grid", gap: 12, opacity: shown ? 1 : 0 }}>
      {Array.from({ length: rows }, (_, row) => (
        <div
          key={row}
          className={css.skeleton}
          style={{ height, width: `${92 - (row % 3) * 17}%` }}
        />
      ))}
    </div>
  );
}

/** A command of the terminal, to be copied. */
export function Command({ text }: { text: string }): React.ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <div className={css.command}>
      <code>{text}</code>
      {globalThis.isSecureContext && (
        <Button kind="plain" onPress={copy} aria-label={`Copy ${text}`}>
          {copied ? "Copied" : "Copy"}
        </Button>
      )}
    </div>
  );
}
