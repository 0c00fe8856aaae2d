// Requests to the API: the page's half of the session, errors as the server words them.

import { Stored } from "./stored";
import type { Error as ErrorBody } from "./types";

const kept = new Stored("elastane-page");

/** The page secret; of this tab only where storage is refused. */
export function pageSecret(): string | null {
  return kept.text;
}

/** Keeps or forgets the page secret. */
export function keepPageSecret(next: string | null): void {
  kept.text = next;
}

/** The body of a refusal, of which a proxy may send nothing. */
type Said = Partial<ErrorBody>;

/** A refusal of the server, or that it was not reached (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string | null;
  /** Messages by field of the request, where the server names fields. */
  readonly fields: Record<string, string>;
  /** Roles that allow the request; empty where the refusal is not about a role. */
  readonly roles: string[];

  constructor(status: number, message: string, requestId: string | null = null, said: Said = {}) {
    super(message);
    this.status = status;
    this.requestId = requestId;
    this.fields = said.fieldFault ? { [said.fieldFault.field]: said.fieldFault.message } : {};
    this.roles = said.missingPermission?.roles ?? [];
  }
}

/** Events of the session that a refusal, or another tab, shows. */
interface SessionListener {
  /** The server no longer knows the session. */
  onEnded: () => void;
  /** The rights differ from those that the page knows. */
  onForbidden: () => void;
  /** Another tab logged in or out. */
  onOtherTab: () => void;
}

let listener: SessionListener | undefined;

/** Sets the listener for events of the session. */
export function listenToSession(next: SessionListener): void {
  listener = next;
}

addEventListener("storage", (event) => {
  const { key } = event as StorageEvent;
  if (key === kept.key || key === null) listener?.onOtherTab();
});

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Sends a request. `T` is the answer; nothing for answers without a body. */
export async function request<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  const secret = pageSecret();
  if (secret) headers["x-elastane-page"] = secret;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
  } catch {
    const unknown = method === "GET" ? "" : "; nothing is known of what it did";
    throw new ApiError(0, `the server was not reached${unknown}`);
  }
  const requestId = answer.headers.get("x-request-id");
  const text = await answer.text();
  if (answer.ok) return parse<T>(answer, text);
  if (!path.startsWith("/elastane/v1/session")) {
    if (answer.status === 401) listener?.onEnded();
    if (answer.status === 403) listener?.onForbidden();
  }
  let said: Said = {};
  try {
    said = JSON.parse(text) as Said;
  } catch {
    // A proxy answered: its text is not for people.
  }
  const message = said.message ?? `the answer was ${answer.status} ${answer.statusText}`;
  throw new ApiError(answer.status, message, requestId, said);
}

/** The answer; a page between the browser and the server may answer in its place. */
function parse<T>(answer: Response, text: string): T {
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    const type = answer.headers.get("content-type")?.split(";")[0] ?? "text";
    throw new ApiError(
      answer.status,
      `the answer is not of Elastane but ${type}: a proxy or a login page before it answered; nothing is known of what the server did`,
      answer.headers.get("x-request-id"),
    );
  }
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);
export const post = <T>(path: string, body?: unknown): Promise<T> =>
  request<T>("POST", path, body ?? {});
