// A tab's end of the worker: views as React state. Knows nothing of what is in them.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";

import type { ServerRow } from "../api/types";
import type {
  Connection,
  FromWorker,
  ToWorker,
  Versioned,
  ViewAnswer,
  ViewSpec,
  WorkloadCounts,
} from "./protocol";
import type { Kind, Kinds } from "./rows";
import workerUrl from "./worker?worker&url";

interface Port {
  postMessage: (message: ToWorker) => void;
}

type Receiver = (message: FromWorker) => void;

let port: Port | undefined;
let lastView = 0;
let connection: Connection = { state: "connecting" };
/** The page was live once: what it shows is as of then. */
let wasLive = false;
/** By the browser's clock, when the connection was lost. */
let lostAt = 0;
let accessChanged: () => void = () => undefined;
const receivers = new Map<number, Receiver>();
/** Callers that wait for the ids of a view. */
const askers = new Map<number, (ids: string[]) => void>();
let lastRequest = 0;
const watchers = new Set<() => void>();

function receive(event: MessageEvent<FromWorker>): void {
  const message = event.data;
  if (message.type === "connection") {
    const { state } = message.connection;
    if (state === "live") {
      wasLive = true;
      lostAt = 0;
    } else if (state === "waiting" && wasLive) lostAt ||= Date.now();
    connection = message.connection;
    for (const watcher of watchers) watcher();
  } else if (message.type === "access") {
    accessChanged();
  } else if (message.type === "fault") {
    // oxlint-disable-next-line no-console
    console.error(`live worker: ${message.text}`);
  } else if (message.type === "ids") {
    askers.get(message.request)?.(message.ids);
    askers.delete(message.request);
  } else {
    receivers.get(message.view)?.(message);
  }
}

/** The address of the worker, passed by the only policy that lets an address become a script. */
function trusted(url: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  if (!types) return url;
  const policy = types.createPolicy("elastane-worker", {
    createScriptURL: (asked) => {
      if (asked !== url) throw new Error("another address");
      return asked;
    },
  });
  return policy.createScriptURL(url);
}

interface TrustedTypes {
  createPolicy: (
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ) => { createScriptURL: (url: string) => string };
}

function open(): Port {
  const url = trusted(workerUrl);
  // Vite serves modules while developing; a built worker is one script, which every browser takes.
  const type = import.meta.env.DEV ? "module" : "classic";
  if (typeof SharedWorker === "function") {
    const shared = new SharedWorker(url, { name: "elastane", type }).port;
    shared.addEventListener("message", receive);
    shared.start();
    return shared;
  }
  const own = new Worker(url, { type });
  own.addEventListener("message", receive);
  return own;
}

/** Views may be requested before the page is known to have a session: the worker keeps them. */
function send(message: ToWorker): void {
  if (!port) {
    port = open();
    addEventListener("pagehide", () => send({ type: "bye" }));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") send({ type: "retry" });
    });
  }
  port.postMessage(message);
}

/** Begins to read the stream as the page with this secret. */
export function startLive(secret: string | null): void {
  connection = { state: "connecting" };
  for (const watcher of watchers) watcher();
  send({ type: "hello", secret });
}

/** Sets the function to call when the caller may see more, or less, than before. */
export function onAccessChanged(then: () => void): void {
  accessChanged = then;
}

/** When the connection was lost, by the browser's clock; 0 while there is one, or none was. */
export function connectionLostAt(): number {
  return lostAt;
}

/** Connects again at once. */
export function retryLive(): void {
  send({ type: "retry" });
}

/** How the connection stands. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connection,
  );
}

/** The ids of all rows of a view, in its order. */
export function idsOf(view: number): Promise<string[]> {
  const request = (lastRequest += 1);
  return new Promise((resolve) => {
    askers.set(request, resolve);
    send({ type: "ids", view, request });
  });
}

/** The answer to a view, and the number by which the view is known. */
export type Answered<T> = ViewAnswer<T> & { view: number };

/** Rows of a kind; undefined until the first answer. Unchanged rows keep their identity. */
export function useView<K extends Kind>(spec: ViewSpec<K>): Answered<Kinds[K]> | undefined {
  const [answer, setAnswer] = useState<Answered<Kinds[K]>>();
  const view = useRef(0);
  const known = useRef(new Map<string, Versioned<Kinds[K]>>());
  const text = JSON.stringify(spec);
  useEffect(() => {
    view.current = lastView += 1;
    const own = view.current;
    receivers.set(own, (message) => {
      if (message.type !== "view") return;
      const next = message.answer as ViewAnswer<Kinds[K]>;
      const kept = new Map<string, Versioned<Kinds[K]>>();
      const rows = next.rows.map((row) => {
        const id = idOf(row.object);
        const before = known.current.get(id);
        const same = before?.version === row.version && before.gone === row.gone;
        // A row that was deleted while the order is frozen stays as it was last.
        const shown = same ? before : row.version < 0 && before ? { ...before, gone: true } : row;
        kept.set(id, shown);
        return shown;
      });
      known.current = kept;
      setAnswer({ ...next, rows, view: own });
    });
    return () => {
      receivers.delete(own);
      send({ type: "drop", view: own });
    };
  }, []);
  useEffect(() => {
    send({ type: "view", view: view.current, spec: JSON.parse(text) as ViewSpec });
  }, [text]);
  return answer;
}

/** The id of any object of the stream. */
export function idOf(object: Kinds[Kind]): string {
  if ("seq" in object) return String(object.seq);
  if ("clusterId" in object && "interface" in object) return object.clusterId;
  return "meta" in object ? object.meta.id : object.id;
}

/** All objects of a kind, sorted. */
export function useAll<K extends Kind>(kind: K, sort: string): Kinds[K][] | undefined {
  const rows = useView({ kind, sort })?.rows;
  return rows?.map(({ object }) => object);
}

/** The server, as the stream tells it; undefined until it is known. */
export function useServer(): ServerRow | undefined {
  return useAll("server", "clusterId")?.[0];
}

/** The first objects of a kind that match, and how many there are: lists may have thousands. */
export function useSome<K extends Kind>(
  spec: ViewSpec<K> & { to: number },
): { objects: Kinds[K][]; total: number } | undefined {
  const answer = useView(spec);
  return answer && { objects: answer.rows.map(({ object }) => object), total: answer.total };
}

/** Counts over all workloads; undefined until the first answer. */
export function useCounts(): WorkloadCounts | undefined {
  const [counts, setCounts] = useState<WorkloadCounts>();
  useEffect(() => {
    const own = (lastView += 1);
    receivers.set(own, (message) => {
      if (message.type === "counts") setCounts(message.counts);
    });
    send({ type: "counts", view: own });
    return () => {
      receivers.delete(own);
      send({ type: "drop", view: own });
    };
  }, []);
  return counts;
}
