// Stands between browser and server, for faults that a real server cannot be brought to cheaply, and
// to show the interface of a folder (`ELASTANE_UI_DIST`) instead of the server's own.
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  request as ask,
  type Server as HttpServer,
  type ServerResponse,
} from "node:http";
import { join } from "node:path";

import type { Error as ErrorBody } from "../src/api/types";

import { ports } from "./ports";

/** A frame of the change stream. */
export interface Frame {
  type: "reset" | "changed" | "deleted" | "synced";
  kind?: string;
  id?: string;
  reason?: string;
  object?: Record<string, unknown>;
  [field: string]: unknown;
}

/** Answers a request instead of the server; `false` lets it pass. */
type Rule = (asked: IncomingMessage, answer: ServerResponse) => boolean | Promise<boolean>;

const FOLDER = process.env.ELASTANE_UI_DIST;
const STREAM = "/elastane/v1/changes";

const TYPES: Record<string, string> = {
  js: "text/javascript",
  css: "text/css",
  html: "text/html; charset=utf-8",
  txt: "text/plain; charset=utf-8",
};

export class Between {
  readonly url: string;
  /** How many streams are open through it. */
  streams = 0;
  /** Paths that were asked for, with their methods. */
  readonly asked: string[] = [];
  readonly #to: { port: number };
  readonly #http: HttpServer;
  readonly #rules = new Set<Rule>();
  readonly #open = new Set<ServerResponse>();
  /** What becomes of each frame of a stream. */
  rewrite: (frame: Frame) => Frame[] = (frame) => [frame];

  private constructor(to: { port: number }, http: HttpServer, port: number) {
    this.#to = to;
    this.#http = http;
    this.url = `http://127.0.0.1:${port}`;
    http.on("request", (asked, answer) => void this.#answer(asked, answer));
  }

  static open(to: { port: number }): Promise<Between> {
    const http = createServer();
    return new Promise((resolve) => {
      http.listen(0, "127.0.0.1", () => {
        const address = http.address();
        const port = typeof address === "object" && address ? address.port : 0;
        ports.add(port);
        resolve(new Between(to, http, port));
      });
    });
  }

  close(): void {
    this.#http.close();
    this.#http.closeAllConnections();
  }

  /** Adds a rule; what is returned takes it away. */
  rule(rule: Rule): () => void {
    this.#rules.add(rule);
    return () => this.#rules.delete(rule);
  }

  /** Answers requests of a path with a status and a message of the server's form. */
  refuse(path: RegExp, status: number, message: string, more: Partial<ErrorBody> = {}): () => void {
    return this.rule((asked, answer) => {
      if (!path.test(asked.url ?? "")) return false;
      answer.writeHead(status, { "content-type": "application/json", "x-request-id": "r-1" });
      answer.end(JSON.stringify({ code: status, message, ...more }));
      return true;
    });
  }

  /** Sends a frame into every open stream. */
  send(frame: Frame): void {
    for (const answer of this.#open) answer.write(eventOf(frame));
  }

  /** Sends frames into every open stream, and waits until they have left. */
  async sendAll(frames: Frame[]): Promise<void> {
    const text = frames.map((frame) => eventOf(frame)).join("");
    const left = [...this.#open].map((answer) =>
      answer.write(text) ? undefined : once(answer, "drain"),
    );
    await Promise.all(left);
  }

  /** Ends every open stream. */
  cut(): void {
    for (const answer of this.#open) answer.destroy();
  }

  async #answer(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    this.asked.push(`${asked.method} ${asked.url}`);
    for (const rule of this.#rules) {
      if (await rule(asked, answer)) return;
    }
    const file = fileOf(asked);
    const options = { port: this.#to.port, host: "127.0.0.1", method: asked.method };
    // A script gets the policy of the page too: that of a worker is the policy of its own script.
    const from = file
      ? { path: "/", headers: { ...asked.headers, accept: "text/html" } }
      : { path: asked.url, headers: asked.headers };
    const passed = ask({ ...options, ...from });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    passed.on("response", (said) => {
      if (file) return serve(file, said, answer);
      answer.writeHead(said.statusCode ?? 502, said.headers);
      if (asked.url?.startsWith(STREAM)) this.#stream(said, answer);
      else said.pipe(answer);
    });
    asked.pipe(passed);
  }

  #stream(said: IncomingMessage, answer: ServerResponse): void {
    answer.flushHeaders();
    this.streams += 1;
    this.#open.add(answer);
    answer.on("close", () => {
      this.streams -= 1;
      this.#open.delete(answer);
    });
    let rest = "";
    said.setEncoding("utf8");
    said.on("data", (piece: string) => {
      const events = (rest + piece).split("\n\n");
      rest = events.pop() ?? "";
      answer.write(events.map((event) => this.#event(event)).join(""));
    });
    said.on("end", () => answer.end());
    said.on("error", () => answer.destroy());
  }

  #event(text: string): string {
    const data = /^data: ?(.*)$/mu.exec(text)?.[1];
    if (data === undefined) return `${text}\n\n`;
    const id = /^id: ?(.*)$/mu.exec(text)?.[1];
    const frames = this.rewrite(ownVersion(JSON.parse(data) as Frame));
    return frames.map((frame) => eventOf(frame, id)).join("");
  }
}

export function eventOf(frame: Frame, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(frame)}\n\n`;
}

/** With the version of the folder, where one is shown. */
function ownVersion(frame: Frame): Frame {
  if (!FOLDER || frame.kind !== "server" || !frame.object) return frame;
  const own = readFileSync(join(FOLDER, "SOURCES"), "utf8").trim();
  return { ...frame, object: { ...frame.object, interface: own } };
}

/** The file of the folder that is asked for. */
function fileOf({ method, url = "", headers }: IncomingMessage): string | undefined {
  if (!FOLDER || method !== "GET") return undefined;
  const path = url.split("?")[0] ?? "";
  if (path.startsWith("/_ui/")) {
    const file = join(FOLDER, path);
    return existsSync(file) ? file : undefined;
  }
  const isPage = headers.accept?.includes("text/html") && !/^\/(api|elastane)\//u.test(path);
  return isPage ? join(FOLDER, "index.html") : undefined;
}

/** Answers with a file under the policy that the server gave its own page. */
function serve(file: string, said: IncomingMessage, answer: ServerResponse): void {
  said.resume();
  const kept = Object.entries(said.headers).filter(
    ([name]) => !/^(content-(?!security)|etag|transfer|connection|date)/u.test(name),
  );
  const type = TYPES[file.split(".").at(-1) ?? ""] ?? "application/octet-stream";
  answer.writeHead(200, { ...Object.fromEntries(kept), "content-type": type });
  answer.end(readFileSync(file));
}
