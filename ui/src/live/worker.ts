// The worker that reads the stream for all tabs of a browser and answers their views.
import { Stream } from "./connection";
import { watchFaults } from "./faults";
import type { FromWorker, ToWorker, ViewSpec } from "./protocol";

/** Views are answered at most this often, and at once after an action of the user. */
const ANSWER_MS = 100;

interface Port {
  postMessage: (message: FromWorker) => void;
}

interface View {
  spec: ViewSpec | "counts";
  order: { order: string[] };
  /**
   * Key of the data of the last answer; a view whose data have not changed is not answered again.
   */
  answered: string;
}

class Tab {
  readonly views = new Map<number, View>();
  readonly #port: Port;

  constructor(port: Port) {
    this.#port = port;
  }

  send(message: FromWorker): void {
    this.#port.postMessage(message);
  }

  answer(view: number): void {
    const found = this.views.get(view);
    if (!found) return;
    const { kind, sort } =
      found.spec === "counts" ? { kind: "workload" as const, sort: undefined } : found.spec;
    const state = stream.store.stateOf(kind, sort);
    if (found.answered === state) return;
    found.answered = state;
    if (found.spec === "counts") {
      this.send({ type: "counts", view, counts: stream.store.counts() });
    } else {
      const answer = stream.store.view(found.spec, found.order);
      this.send({ type: "view", view, answer });
    }
  }

  answerAll(): void {
    for (const view of this.views.keys()) this.answer(view);
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case "hello":
        stream.begin(message.secret);
        this.send({ type: "connection", connection: stream.state });
        break;
      case "view": {
        const before = this.views.get(message.view);
        this.views.set(message.view, {
          spec: message.spec,
          order: before?.order ?? { order: [] },
          answered: "",
        });
        if (ready()) this.answer(message.view);
        break;
      }
      case "counts":
        this.views.set(message.view, { spec: "counts", order: { order: [] }, answered: "" });
        if (ready()) this.answer(message.view);
        break;
      case "ids": {
        const { view, request } = message;
        const ids = this.views.get(view)?.order.order ?? [];
        this.send({ type: "ids", view, request, ids });
        break;
      }
      case "drop":
        this.views.delete(message.view);
        break;
      case "retry":
        stream.retry();
        break;
      case "bye":
        tabs.delete(this);
        break;
    }
  }
}

const tabs = new Set<Tab>();
watchFaults(self, (text) => {
  for (const tab of tabs) tab.send({ type: "fault", text });
});
let timer: ReturnType<typeof setTimeout> | undefined;
let synced = false;

/** True if there is a complete list to answer from. */
function ready(): boolean {
  return synced;
}

const stream = new Stream((what) => {
  if (stream.state.state === "live") synced = true;
  if (stream.state.state === "logged-out" || stream.state.state === "connecting") synced = false;
  if (what === "connection") {
    for (const tab of tabs) tab.send({ type: "connection", connection: stream.state });
  } else if (what === "access") {
    for (const tab of tabs) tab.send({ type: "access" });
  }
  if (synced && timer === undefined) {
    timer = setTimeout(() => {
      timer = undefined;
      for (const tab of tabs) tab.answerAll();
    }, ANSWER_MS);
  }
});

function add(port: Port & EventTarget & { start?: () => void }): void {
  const tab = new Tab(port);
  tabs.add(tab);
  port.addEventListener("message", (event) => tab.receive((event as MessageEvent<ToWorker>).data));
  port.start?.();
}

self.addEventListener("online", () => stream.retry());
if ("onconnect" in self) {
  self.addEventListener("connect", (event) => {
    for (const port of (event as MessageEvent).ports) add(port);
  });
} else {
  add(self as unknown as Port & EventTarget);
}
