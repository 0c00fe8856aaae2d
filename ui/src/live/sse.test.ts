// Tests of the parser of events.
import { expect, test } from "vitest";

import { EventParser } from "./sse";

const STREAM =
  'id: \ndata: {"a":1}\n\n: still here\n\nid: 4f-58\r\ndata: one\r\ndata: two\r\n\r\nid: 9\ndata: cut';

test("pieces may end anywhere", () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) {
      events.push(...parser.push(STREAM.slice(at, at + size)));
    }
    expect(events).toEqual([
      { id: undefined, data: '{"a":1}' },
      { id: "4f-58", data: "one\ntwo" },
    ]);
  }
});
