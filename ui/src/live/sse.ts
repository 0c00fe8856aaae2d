// Parser of server-sent events. Knows nothing of what they mean.

/** One event: its data, and the position behind it, if it has one. */
export interface StreamEvent {
  id: string | undefined;
  data: string;
}

/** Cuts a stream of text into events. Pieces may end anywhere. */
export class EventParser {
  #rest = "";
  #data: string[] = [];
  #id: string | undefined;

  /** The events that are complete with this piece. */
  push(piece: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.#data.length > 0) events.push({ id: this.#id, data: this.#data.join("\n") });
        this.#data = [];
        this.#id = undefined;
        continue;
      }
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
      if (name === "data") this.#data.push(value);
      if (name === "id" && value !== "") this.#id = value;
    }
    return events;
  }
}
