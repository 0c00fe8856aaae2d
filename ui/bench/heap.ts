// The heap of a page or of its worker after a collection, with the machine code in it apart.
import type { Browser, Page } from "@playwright/test";

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[]] } };
  nodes: number[];
}

/** Bytes. V8 compiles code that runs often again for minutes: it grows without any leak. */
export interface Heap {
  objects: number;
  code: number;
}

/** The debugger of a page or worker. */
interface Debugger {
  send: (method: "HeapProfiler.collectGarbage" | "HeapProfiler.takeHeapSnapshot") => Promise<void>;
  /** What came of the snapshot that is being taken. */
  pieces: string[];
}

const PIECE = "HeapProfiler.addHeapSnapshotChunk";

export async function debugPage(page: Page): Promise<Debugger> {
  const session = await page.context().newCDPSession(page);
  const pieces: string[] = [];
  session.on(PIECE, ({ chunk }) => pieces.push(chunk));
  return {
    send: async (method) => {
      await session.send(method);
    },
    pieces,
  };
}

interface Message {
  id?: number;
  method?: string;
  params?: { chunk: string };
  error?: { message: string };
}

/** The debugger of the shared worker, which must get no data and no new page until `detach`. */
export async function debugWorker(
  browser: Browser,
): Promise<Debugger & { detach: () => Promise<void> }> {
  const session = await browser.newBrowserCDPSession();
  const { targetInfos } = await session.send("Target.getTargets");
  const targetId = targetInfos.find(({ type }) => type === "shared_worker")?.targetId;
  if (!targetId) throw new Error("no shared worker runs");
  // Playwright has no session for a worker: messages to it are sent in messages.
  const { sessionId } = await session.send("Target.attachToTarget", { targetId, flatten: false });
  const pieces: string[] = [];
  const answered = new Map<number, (answer: Message) => void>();
  session.on("Target.receivedMessageFromTarget", ({ message }) => {
    const answer = JSON.parse(message) as Message;
    if (answer.method === PIECE) pieces.push(answer.params?.chunk ?? "");
    else if (answer.id !== undefined) answered.get(answer.id)?.(answer);
  });
  return {
    send: async (method) => {
      const id = answered.size + 1;
      const answer = new Promise<Message>((resolve) => {
        answered.set(id, resolve);
      });
      const message = JSON.stringify({ id, method });
      await session.send("Target.sendMessageToTarget", { sessionId, message });
      const { error } = await answer;
      if (error) throw new Error(`${method}: ${error.message}`);
    },
    pieces,
    detach: async () => {
      await session.send("Target.detachFromTarget", { sessionId });
      await session.detach();
    },
  };
}

export async function heapOf({ send, pieces }: Debugger): Promise<Heap> {
  await send("HeapProfiler.collectGarbage");
  await send("HeapProfiler.takeHeapSnapshot");
  const { snapshot, nodes } = JSON.parse(pieces.splice(0).join("")) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, size] = [fields.indexOf("type"), fields.indexOf("self_size")];
  const heap = { objects: 0, code: 0 };
  for (let at = 0; at < nodes.length; at += fields.length) {
    const isCode = types[0][nodes[at + type] ?? 0] === "code";
    heap[isCode ? "code" : "objects"] += nodes[at + size] ?? 0;
  }
  return heap;
}
