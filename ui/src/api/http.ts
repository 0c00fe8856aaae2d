// Requests to the API: the page's half of the session, errors as the server words them.

const STORED = "elastane-page";
let memory: string | null = null;

/** The page secret; of this tab only where storage is refused. */
export function pageSecret(): string | null {
  try {
    return localStorage.getItem(STORED) ?? memory;
  } catch {
    return memory;
  }
}

/** Keeps or forgets the page secret. */
export function keepPageSecret(secret: string | null): void {
  memory = secret;
  try {
    if (secret === null) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, secret);
  } catch {
    // Storage is refused: the session lasts as long as the tab.
  }
}

/** A refusal of the server, or that it was not reached (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly requestId: string | null;
  /** Messages by field of the request, where the server names fields. */
  readonly fields: Record<string, string>;

  constructor(
    status: number,
    message: string,
    requestId: string | null = null,
    fields: Record<string, string> = {},
  ) {
    super(message);
    this.status = status;
    this.requestId = requestId;
    this.fields = fields;
  }
}

let loggedOut: () => void = () => undefined;

/** Says what to do when the server no longer knows the session. */
export function onLoggedOut(then: () => void): void {
  loggedOut = then;
}

function asFields(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const entries = Array.isArray(value)
    ? value.map((one: { field?: string; message?: string }) => [one.field ?? "", one.message])
    : Object.entries(value);
  return Object.fromEntries(entries.map(([field, message]) => [field, String(message)]));
}

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
    throw new ApiError(0, "the server was not reached; nothing is known of what it did");
  }
  const requestId = answer.headers.get("x-request-id");
  const text = await answer.text();
  if (answer.ok) return (text === "" ? undefined : JSON.parse(text)) as T;
  if (answer.status === 401 && !path.startsWith("/elastane/v1/session")) loggedOut();
  let said: { message?: string; fields?: unknown } = {};
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    // A proxy answered: what it says is not for people.
  }
  const message = said.message ?? `the answer was ${answer.status} ${answer.statusText}`;
  throw new ApiError(answer.status, message, requestId, asFields(said.fields));
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);
export const post = <T>(path: string, body?: unknown): Promise<T> =>
  request<T>("POST", path, body ?? {});
