// The heap of a page after a collection, with the machine code in it apart.
import type { CDPSession } from "@playwright/test";

interface Snapshot {
  snapshot: { meta: { node_fields: string[]; node_types: [string[]] } };
  nodes: number[];
}

/** Bytes. V8 compiles code that runs often again for minutes: it grows without any leak. */
export interface Heap {
  objects: number;
  code: number;
}

export async function heapOf(session: CDPSession): Promise<Heap> {
  await session.send("HeapProfiler.collectGarbage");
  let text = "";
  const add = ({ chunk }: { chunk: string }) => {
    text += chunk;
  };
  session.on("HeapProfiler.addHeapSnapshotChunk", add);
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  session.off("HeapProfiler.addHeapSnapshotChunk", add);
  const { snapshot, nodes } = JSON.parse(text) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [type, size] = [fields.indexOf("type"), fields.indexOf("self_size")];
  const heap = { objects: 0, code: 0 };
  for (let at = 0; at < nodes.length; at += fields.length) {
    const isCode = types[0][nodes[at + type] ?? 0] === "code";
    heap[isCode ? "code" : "objects"] += nodes[at + size] ?? 0;
  }
  return heap;
}
