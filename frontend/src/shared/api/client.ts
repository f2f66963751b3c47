export interface ProblemBody {
  code: string;
  message: string;
  field?: string;
}

/** A refusal by the API, with the field at fault where there is one. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;

  constructor(status: number, body: ProblemBody) {
    super(body.message);
    this.name = 'Problem';
    this.status = status;
    this.code = body.code;
    this.field = body.field;
  }

  /** The message for a place beside the field at fault, which needs no naming there. */
  get beside(): string {
    const name = `${this.field ?? ''}: `;
    return this.field && this.message.startsWith(name)
      ? this.message.slice(name.length)
      : this.message;
  }
}

/**
 * No answer, or not the whole of it. Denied says that the browser itself forbids the
 * request; unsure, that it was to change something, and may have done so.
 */
export class Unreachable extends Error {
  readonly denied: boolean;
  readonly unsure: boolean;

  constructor(denied: boolean, cause?: unknown, unsure = false) {
    super('no answer', { cause });
    this.name = 'Unreachable';
    this.denied = denied;
    this.unsure = unsure;
  }
}

/** What to send besides the method and path. */
export interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Lets the request outlive the page. */
  keepalive?: boolean;
  /** It changes nothing, whatever its method. */
  harmless?: boolean;
  /** Without a signal: so many ms the answer may take to begin, then there is none. If zero, as long as it takes. */
  patience?: number;
}

let bearer = '';

/** Uses the token from now on; an empty one is none. */
export function setBearer(token: string): void {
  bearer = token;
}

const unsure = new Set<() => void>();

/** Calls f whenever nobody knows whether a request has changed something; returns the end of it. */
export function whenUnsure(f: () => void): () => void {
  unsure.add(f);
  return () => void unsure.delete(f);
}

/** Returns the error for an answer that did not come, or not the whole of it. */
function lost(method: string, o: Options, cause: unknown, denied = false): Unreachable {
  const changing = !denied && method !== 'GET' && !o.harmless;
  if (changing) for (const f of unsure) f();
  return new Unreachable(denied, cause, changing);
}

/** Returns the address of an API path; the page may stand below a prefix. */
export function address(path: string): string {
  return new URL(`api/v1/${path}`, document.baseURI).href;
}

/** Sends a request; its answer is a success, or this throws. */
export async function send(method: string, path: string, o: Options = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: 'application/json', ...o.headers };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  let body: string | undefined;
  if (o.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(o.body);
  }
  let answer: Response;
  const patience = new AbortController();
  const timer = o.patience ? setTimeout(() => patience.abort(), o.patience) : undefined;
  try {
    answer = await fetch(address(path), {
      method,
      headers,
      body,
      signal: o.signal ?? patience.signal,
      keepalive: o.keepalive,
      credentials: 'same-origin',
      cache: 'no-store',
    });
  } catch (error) {
    if (o.signal?.aborted) throw error;
    throw lost(method, o, error, await loopbackDenied());
  } finally {
    clearTimeout(timer);
  }
  if (answer.ok) return answer;
  throw new Problem(answer.status, await problem(answer));
}

/** Sends a request and returns what is in the answer's envelope. */
export async function call<T>(method: string, path: string, o: Options = {}): Promise<T> {
  return (await ask<T>(method, path, o)).data;
}

/** The same with the answer's headers. */
export async function ask<T>(
  method: string,
  path: string,
  o: Options = {},
): Promise<{ data: T; headers: Headers }> {
  const answer = await send(method, path, o);
  if (answer.status === 204) return { data: undefined as T, headers: answer.headers };
  try {
    const { data } = (await answer.json()) as { data: T };
    return { data, headers: answer.headers };
  } catch (error) {
    // What is no JSON is a fault of its own; what the network broke off is a TypeError.
    if (o.signal?.aborted || !(error instanceof TypeError)) throw error;
    throw lost(method, o, error);
  }
}

async function problem(answer: Response): Promise<ProblemBody> {
  try {
    const { error } = (await answer.json()) as { error?: ProblemBody };
    if (error?.code && error.message) return error;
  } catch {
    // Something between page and server answered in its own words.
  }
  return { code: 'internal', message: `${answer.status} ${answer.statusText}`.trim() };
}

// Chromium's names for the leave to reach this machine; the first is the older.
const permissions = ['local-network-access', 'loopback-network', 'local-network'];

/**
 * Reports whether the browser was told not to let this page reach loopback.
 * A page that itself comes from loopback needs no leave, whatever the browser
 * answers; and browsers without the permission throw on its name.
 */
export async function loopbackDenied(host = location.hostname): Promise<boolean> {
  if (/^(127\.[\d.]+|\[::1\]|(.+\.)?localhost)$/.test(host)) return false;
  for (const name of permissions) {
    try {
      const { state } = await navigator.permissions.query({ name: name as PermissionName });
      if (state === 'denied') return true;
    } catch {
      // Not known to this browser.
    }
  }
  return false;
}
