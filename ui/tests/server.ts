// A real server with simulated nodes, and requests to it past the browser.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Between } from "./between";
import { ports } from "./ports";

/** Two nodes with two GPUs each, as in the published walk-throughs. */
const NODES = "2x2x16GiB";

interface Scope {
  scopeType: string;
  scopeId: string | undefined;
}

interface Created {
  id: string;
}

export class Server {
  readonly port: number;
  readonly home: string;
  #process: ChildProcess | undefined;
  /** Shows the interface of a folder instead of the server's own. */
  #front: Between | undefined;
  #cluster: string | undefined;

  private constructor(port: number) {
    this.port = port;
    ports.add(port);
    this.home = mkdtempSync(join(tmpdir(), "elastane-ui-"));
  }

  static async start(): Promise<Server> {
    const server = new Server(await freePort());
    await server.start();
    if (process.env.ELASTANE_UI_DIST) server.#front = await Between.open(server);
    return server;
  }

  /** Where browsers find it. */
  get url(): string {
    return this.#front?.url ?? this.direct;
  }

  /** The server itself, with nothing between. */
  get direct(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it, or starts it again, and waits until it answers. */
  async start(): Promise<void> {
    const bin = process.env.ELASTANE_BIN;
    if (!bin)
      throw new Error("ELASTANE_BIN is the folder of the built programs; `make ui-test` sets it");
    const state = join(this.home, "state");
    const listen = `127.0.0.1:${this.port}`;
    const args = ["up", "--nodes", NODES, "--runtime", "process", "--listen", listen];
    const child = spawn(join(bin, "elastane"), [...args, "--state-dir", state], {
      env: { ...process.env, HOME: this.home, XDG_STATE_HOME: state },
    });
    this.#process = child;
    let printed = "";
    await new Promise<void>((resolve, reject) => {
      const read = (piece: Buffer) => {
        printed += piece.toString();
        if (/\/login#once=\S+/u.test(printed)) resolve();
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("exit", () => reject(new Error(`the server ended:\n${printed}`)));
    });
    child.removeAllListeners("exit");
    const pools = await this.api<{ nodepools: { clusterId: string }[] }>(
      "GET",
      "/api/v1/node-pools",
    );
    this.#cluster = pools.nodepools[0]?.clusterId;
  }

  #token(): string {
    return readFileSync(join(this.home, "state", "token"), "utf8").trim();
  }

  /** A request as the local administrator. */
  async api<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.direct + path, {
      method,
      headers: { authorization: `Bearer ${this.#token()}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** A link that logs a user in once, or the local administrator, at the address of `front`. */
  async link(front: string = this.url, user?: string): Promise<string> {
    const { url } = await this.api<{ url: string }>("POST", "/elastane/v1/session/links", { user });
    return `${front}/login${new URL(url).hash}`;
  }

  /** Creates a project with a quota of two GPUs, and answers its id. */
  async project(name: string): Promise<string> {
    const nodePool = { id: "1", name: "default" };
    const resources = [{ nodePool, gpu: { deserved: 2 } }];
    const body = { name, parentId: "1", clusterId: this.#cluster, resources };
    return (await this.api<Created>("POST", "/api/v1/org-unit/projects", body)).id;
  }

  /** Submits a training with one GPU, and answers its id. */
  async submit(projectId: string, name: string, spec: object = {}): Promise<string> {
    const compute = { gpuDevicesRequest: 1 };
    const image = "runai.jfrog.io/demo/quickstart";
    const body = { name, projectId, clusterId: this.#cluster, spec: { image, compute, ...spec } };
    const made = await this.api<{ workloadId: string }>(
      "POST",
      "/api/v1/workloads/trainings",
      body,
    );
    return made.workloadId;
  }

  /** Deletes a training, as another user would. */
  async remove(id: string): Promise<void> {
    await this.api("DELETE", `/api/v1/workloads/trainings/${id}`);
  }

  /** Deletes the workloads of a project, whose GPUs the next test needs. */
  async clear(projectId: string): Promise<void> {
    const filter = encodeURIComponent(`projectId==${projectId}`);
    const { workloads } = await this.api<{ workloads: Created[] }>(
      "GET",
      `/api/v1/workloads?filterBy=${filter}&limit=500`,
    );
    await Promise.all(workloads.map(({ id }) => this.remove(id)));
  }

  /** Creates an asset for the whole cluster, and answers its id. */
  async asset(kind: "environment" | "compute", name: string, spec: object): Promise<string> {
    const meta = { name, scope: "cluster", clusterId: this.#cluster };
    const made = await this.api<{ meta: Created }>("POST", `/api/v1/asset/${kind}`, { meta, spec });
    return made.meta.id;
  }

  /** Creates a template of trainings, for the whole cluster or a project, and answers its id. */
  async template(name: string, spec: object, projectId?: string): Promise<string> {
    const path = "/api/v1/workload-templates/trainings";
    const body = { meta: { name, ...this.#scope(projectId) }, spec };
    return (await this.api<{ meta: Created }>("POST", path, body)).meta.id;
  }

  /** Deletes a template, as another user would. */
  async deleteTemplate(id: string): Promise<void> {
    await this.api("DELETE", `/api/v1/workload-templates/trainings/${id}`);
  }

  /** The cluster, or the project of an id, or what is given. */
  #scope(part: string | Scope | undefined): Partial<Scope> {
    if (typeof part === "object") return part;
    return part
      ? { scopeType: "project", scopeId: part }
      : { scopeType: "cluster", scopeId: this.#cluster };
  }

  /** Deletes the compute resources of a new installation. */
  async deleteSamples(): Promise<void> {
    const path = "/api/v1/asset/compute";
    const { entries } = await this.api<{ entries: { meta: Created }[] }>("GET", path);
    await Promise.all(entries.map(({ meta }) => this.api("DELETE", `${path}/${meta.id}`)));
  }

  /** Creates a user who has to choose another password first, and answers the one given out. */
  async newUser(email: string): Promise<string> {
    return (await this.api<{ tempPassword: string }>("POST", "/api/v1/users", { email }))
      .tempPassword;
  }

  /** Creates a user who may log in at once, and answers the password. */
  async user(email: string): Promise<string> {
    const body = { email, resetPassword: false };
    return (await this.api<{ tempPassword: string }>("POST", "/api/v1/users", body)).tempPassword;
  }

  /** Gives a user a role everywhere or in a part, by the name of the role; answers the id of the rule. */
  async give(email: string, role: string, part?: string | Scope): Promise<string> {
    const roles = await this.api<{ id: number; name: string }[]>(
      "GET",
      "/api/v1/authorization/roles",
    );
    const roleId = roles.find(({ name }) => name === role)?.id;
    const rule = { subjectId: email, subjectType: "user", roleId };
    const path = "/api/v1/authorization/access-rules";
    return String(
      (await this.api<{ id: number }>("POST", path, { ...rule, ...this.#scope(part) })).id,
    );
  }

  /** Stops it; what runs goes on. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null) return;
    await new Promise<void>((resolve) => {
      child.on("exit", () => resolve());
      child.kill("SIGINT");
    });
  }

  /** Stops it with every workload, and removes what it kept. */
  async down(): Promise<void> {
    const child = this.#process;
    if (child && child.exitCode === null) {
      const ended = new Promise((resolve) => {
        child.on("exit", resolve);
      });
      await this.api("POST", "/elastane/v1/down");
      await ended;
    }
    this.#front?.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}
