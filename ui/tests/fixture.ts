// A real server with simulated nodes for a test, and a page that may do nothing it should not.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, type Page, test as base } from "@playwright/test";

export class Server {
  readonly url: string;
  readonly home: string;
  readonly port: number;
  #process: ChildProcess | undefined;
  #links: string[] = [];

  constructor(port: number) {
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.home = mkdtempSync(join(tmpdir(), "elastane-ui-"));
  }

  /** Starts it, or starts it again, and waits for the link that it prints. */
  async start(): Promise<void> {
    const bin = process.env.ELASTANE_BIN;
    if (!bin)
      throw new Error("ELASTANE_BIN is the folder of the built programs; `make ui-test` sets it");
    const listen = `127.0.0.1:${this.port}`;
    const args = ["up", "--nodes", "2x2x16GiB", "--runtime", "process", "--listen", listen];
    const env = { ...process.env, HOME: this.home, XDG_STATE_HOME: join(this.home, "state") };
    const child = spawn(join(bin, "elastane"), [...args, "--state-dir", join(this.home, "state")], {
      env,
    });
    this.#process = child;
    let printed = "";
    await new Promise<void>((resolve, reject) => {
      const read = (piece: Buffer) => {
        printed += piece.toString();
        const link = /http\S+\/login#once=\S+/u.exec(printed)?.[0];
        if (link) {
          this.#links.push(link);
          resolve();
        }
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("exit", () => reject(new Error(`the server ended:\n${printed}`)));
    });
    child.removeAllListeners("exit");
  }

  /** A link that logs in once. */
  link(): string {
    const link = this.#links.pop();
    if (!link) throw new Error("the link was used");
    return link;
  }

  /** A new user's first password. */
  newUser(email: string): string {
    return this.#run("elastane", "user", "create", email).trim().split("\n").at(-1) ?? "";
  }

  /** A training with one GPU in a new project. */
  submit(project: string, name: string): void {
    this.#run("elastane", "project", "create", project, "--gpu-quota", "2");
    const image = "runai.jfrog.io/demo/quickstart";
    this.#run("runai", "training", "submit", name, "-i", image, "-g", "1", "-p", project);
  }

  /** Deletes a training, as another user would. */
  remove(project: string, name: string): void {
    this.#run("runai", "training", "delete", name, "-p", project);
  }

  #run(program: string, ...args: string[]): string {
    const env = {
      ...process.env,
      HOME: this.home,
      XDG_STATE_HOME: join(this.home, "state"),
      ELASTANE_STATE_DIR: join(this.home, "state"),
    };
    const bin = process.env.ELASTANE_BIN ?? "";
    return execFileSync(join(bin, program), args, { env, encoding: "utf8" });
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    await new Promise<void>((resolve) => {
      child.on("exit", () => resolve());
      child.kill("SIGINT");
    });
  }

  /** Stops it with every workload. */
  async down(): Promise<void> {
    const token = readFileSync(join(this.home, "state", "token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${this.url}/elastane/v1/down`, { method: "POST", headers });
    if (!answer.ok) throw new Error(await answer.text());
    const child = this.#process;
    if (child && child.exitCode === null) {
      await new Promise((resolve) => {
        child.on("exit", resolve);
      });
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

/** What a page must never do; each entry fails its test. */
export function watch(page: Page, url: string): string[] {
  const faults: string[] = [];
  page.on("console", (message) => {
    const isExpected = /Failed to load resource|ERR_/u.test(message.text());
    if (message.type() === "error" && !isExpected) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(url) && !to.startsWith("data:")) faults.push(`another host: ${to}`);
  });
  return faults;
}

interface Fixtures {
  server: Server;
  /** A page that is logged in by the link that the server printed. */
  app: Page;
}

export const test = base.extend<Fixtures>({
  // oxlint-disable-next-line no-empty-pattern
  server: async ({}, provide) => {
    const server = new Server(await freePort());
    await server.start();
    await provide(server);
    await server.down();
    rmSync(server.home, { recursive: true, force: true });
  },
  app: async ({ page, server }, provide) => {
    const faults = watch(page, server.url);
    await page.goto(server.link());
    await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
    await provide(page);
    expect(faults).toEqual([]);
  },
});

export { expect, type Page };
