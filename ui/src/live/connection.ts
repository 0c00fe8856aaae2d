// The connection to the change stream: reads it, keeps the position, and connects again.
import type { ResetReason } from "../api/types";
import type { Connection } from "./protocol";
import { KINDS, type Kind, type Kinds } from "./rows";
import { EventParser, type StreamEvent } from "./sse";
import { Store } from "./store";

const RETRY_MS_FIRST = 500;
const RETRY_MS_MAX = 15_000;
/** The server sends something each 15 seconds; after this long it counts as gone. */
const SILENCE_MS_MAX = 40_000;

interface Change {
  type: "reset" | "changed" | "deleted" | "synced";
  /** Reason of a reset. */
  reason?: ResetReason;
  kind: string;
  id: string;
  object: Kinds[Kind];
  position?: string;
}

/** Events for listeners: other objects, another state, other rights of the caller. */
export type StreamNews = "objects" | "connection" | "access";

export class Stream {
  store = new Store();
  state: Connection = { state: "connecting" };
  /** Objects of a list that is not complete yet. */
  #next: Store | undefined;
  #position: string | undefined;
  #secret: string | null = null;
  #abort: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delay = RETRY_MS_FIRST;
  readonly #changed: (what: StreamNews) => void;

  constructor(changed: (what: StreamNews) => void) {
    this.#changed = changed;
  }

  /** Begins to read as this page, or again as another. */
  begin(secret: string | null): void {
    if (secret === this.#secret && this.state.state !== "logged-out") return;
    this.#secret = secret;
    this.#position = undefined;
    this.store = new Store();
    // Also after a wait: the store is empty, and not a list of nothing.
    this.#set({ state: "connecting" });
    void this.#run();
  }

  /** Connects now, if it waits to. */
  retry(): void {
    if (this.state.state === "waiting") void this.#run();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#secret = null;
    this.store = new Store();
    this.#set({ state: "logged-out" });
  }

  #set(state: Connection): void {
    this.state = state;
    this.#changed("connection");
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    if (this.state.state !== "waiting") this.#set({ state: "connecting" });
    let why = "the server ended the stream";
    try {
      const status = await this.#read(abort);
      if (status === 401) return this.end();
      if (status !== 200) why = `the server answers ${status}`;
    } catch {
      why = "no connection to the server";
    }
    if (abort !== this.#abort) return;
    const wait = this.#delay * (0.75 + Math.random() / 2);
    this.#delay = Math.min(this.#delay * 2, RETRY_MS_MAX);
    this.#set({ state: "waiting", why, retryAt: Date.now() + wait });
    this.#timer = setTimeout(() => void this.#run(), wait);
  }

  async #read(abort: AbortController): Promise<number> {
    // A list that was cut off begins again.
    this.#next = undefined;
    const query = new URLSearchParams({ shape: "row", kinds: KINDS });
    if (this.#position) query.set("after", this.#position);
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (this.#secret) headers["x-elastane-page"] = this.#secret;
    const answer = await fetch(`/elastane/v1/changes?${query}`, { headers, signal: abort.signal });
    if (answer.status === 403) return this.#readAllowed(abort, headers, query);
    if (!answer.ok || !answer.body) return answer.status;
    return this.#apply(answer.body, abort);
  }

  /** Reads the kinds that the caller may see, if it may not see all of them. */
  async #readAllowed(
    abort: AbortController,
    headers: Record<string, string>,
    query: URLSearchParams,
  ): Promise<number> {
    query.delete("kinds");
    const answer = await fetch(`/elastane/v1/changes?${query}`, { headers, signal: abort.signal });
    if (!answer.ok || !answer.body) return answer.status;
    return this.#apply(answer.body, abort);
  }

  async #apply(body: ReadableStream<Uint8Array>, abort: AbortController): Promise<number> {
    const reader = body
      .pipeThrough(new TextDecoderStream() as never)
      .getReader() as ReadableStreamDefaultReader<string>;
    const parser = new EventParser();
    let silence: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MS_MAX);
        const { done, value } = await reader.read();
        if (done) return 200;
        const events = parser.push(value);
        try {
          this.#applyAll(events);
        } catch (error) {
          // Only the network may fail here: any other error is a defect, and is not to look like a
          // lost connection alone.
          reportError(error);
          throw error;
        }
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #applyAll(events: StreamEvent[]): void {
    for (const { id, data } of events) {
      this.#change(JSON.parse(data) as Change);
      if (id) this.#position = id;
    }
    if (this.#next) {
      this.#set({ state: "catching-up", objects: this.#next.size });
    } else if (events.length > 0) {
      this.#changed("objects");
    }
  }

  #change(change: Change): void {
    const store = this.#next ?? this.store;
    switch (change.type) {
      case "reset":
        this.#next = new Store();
        // There is nothing to go on from until the list is complete.
        this.#position = undefined;
        if (change.reason === "access") this.#changed("access");
        break;
      case "changed":
        store.set(change.kind, change.id, change.object);
        break;
      case "deleted":
        store.delete(change.kind, change.id);
        break;
      case "synced":
        // A list replaces everything in one step, never row by row.
        if (this.#next) this.store = this.#next;
        this.#next = undefined;
        if (change.position) this.#position = change.position;
        this.#delay = RETRY_MS_FIRST;
        if (this.state.state !== "live") this.#set({ state: "live" });
        break;
    }
  }
}
