import { call, send } from '../api/client';
import { visitorOf } from '../lib/states';
import type { List, Replay, RequestDetail, RequestSummary } from '../api/types';

/** The page keeps at most this many; the daemon forgets by size. */
export const most = 10_000;
const page = 1000;

export interface RequestFilter {
  text: string;
  tunnel: string;
  kind: (typeof kinds)[number];
  status: (typeof statuses)[number];
}

export const noFilter: RequestFilter = { text: '', tunnel: '', kind: '', status: '' };

const kinds = ['', 'http', 'flow'] as const;
const statuses = ['', '2xx', '3xx', '4xx', '5xx', 'error'] as const;

/** Reads a filter from the location; what it does not know looks for everything. */
export function filterOf(query: Readonly<Record<string, string>>): RequestFilter {
  return {
    text: query.text ?? '',
    tunnel: query.tunnel ?? '',
    kind: kinds.find((k) => k === query.kind) ?? '',
    status: statuses.find((s) => s === query.status) ?? '',
  };
}

/** Text with what is not ASCII as it stands in paths: percent-encoded. */
const asInPaths = (text: string) =>
  text.replace(/[^\0-\x7f]+/g, (part) => {
    try {
      return encodeURIComponent(part);
    } catch {
      return part; // half a character is in no path
    }
  });

/** Reports whether a request fits the filter. */
export function matches(r: RequestSummary, f: RequestFilter): boolean {
  if (f.tunnel && r.tunnel_id !== f.tunnel) return false;
  if (f.kind && r.kind !== f.kind) return false;
  if (f.status === 'error') {
    if (r.state !== 'failed') return false;
  } else if (f.status && Math.floor((r.status ?? 0) / 100) !== Number(f.status[0])) return false;
  const text = f.text.trim().toLowerCase();
  if (!text) return true;
  const line =
    `${r.method ?? ''} ${r.host ?? ''}${r.path ?? ''} ${r.status ?? ''} ${visitorOf(r)} ${r.tunnel_name}${r.tunnel_path ?? ''}`.toLowerCase();
  return line.includes(text) || line.includes(asInPaths(f.text.trim()).toLowerCase());
}

/** Returns those that are too many, the oldest first. */
function oldest(all: ReadonlyMap<string, RequestSummary>): string[] {
  return all.size > most ? [...all.keys()].slice(0, all.size - most) : [];
}

const path = (id: string, rest = '') => `requests/${encodeURIComponent(id)}${rest}`;

/** What the inspector saw, newest last in memory and first on the page. */
export class RequestStore {
  #byId = new Map<string, RequestSummary>();
  items = $state.raw<readonly RequestSummary[]>([]);
  loaded = $state(false);
  /** Why not all of it is here. */
  problem = $state.raw<unknown>();
  /** While paused the list stands still; what comes meanwhile is counted. */
  paused = $state(false);
  waiting = $state(0);
  #held = new Map<string, RequestSummary>();
  #generation = 0;
  // What events brought since the last load began.
  #arrived = new Map<string, RequestSummary>();

  /** Loads what the daemon holds, newest first, page by page. */
  async load(): Promise<void> {
    const generation = ++this.#generation;
    this.#arrived.clear();
    // What was held back is in what comes now, unless the daemon has it no more, or is
    // another, whose ids are those of other requests.
    this.#hold(new Map());
    try {
      await this.#loadPages(generation);
      if (generation === this.#generation) this.problem = undefined;
    } catch (error) {
      if (generation === this.#generation) this.problem = error;
      throw error;
    }
  }

  async #loadPages(generation: number): Promise<void> {
    const older: RequestSummary[] = [];
    let before = '';
    while (older.length < most) {
      const query = before ? `&before=${encodeURIComponent(before)}` : '';
      const { items } = await call<List<RequestSummary>>('GET', `requests?limit=${page}${query}`);
      if (generation !== this.#generation) return;
      older.push(...items);
      before = items.at(-1)?.id ?? '';
      // The first page is shown while the others come.
      if (older.length === items.length || items.length < page) this.#reset(older);
      if (items.length < page) break;
    }
    this.#reset(older);
    this.#arrived.clear();
  }

  #reset(newestFirst: readonly RequestSummary[]): void {
    const fresh = new Map<string, RequestSummary>();
    for (let i = newestFirst.length - 1; i >= 0; i--) {
      const r = newestFirst[i];
      if (r) fresh.set(r.id, r);
    }
    // What events brought meanwhile is newer than what was loaded.
    for (const [id, r] of this.#arrived) fresh.set(id, r);
    this.#byId = fresh;
    this.loaded = true;
    this.#publish();
  }

  apply(batch: readonly RequestSummary[]): void {
    if (batch.length === 0) return;
    if (this.paused) {
      for (const r of batch) this.#held.set(r.id, r);
      // The list would not take more of them.
      for (const id of oldest(this.#held)) this.#held.delete(id);
      this.waiting = this.#held.size;
      return;
    }
    for (const r of batch) {
      this.#byId.set(r.id, r);
      this.#arrived.set(r.id, r);
    }
    this.#publish();
  }

  #publish(): void {
    for (const id of oldest(this.#byId)) {
      this.#byId.delete(id);
      this.#arrived.delete(id);
    }
    this.items = [...this.#byId.values()];
  }

  #hold(held: Map<string, RequestSummary>): void {
    this.#held = held;
    this.waiting = held.size;
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    const held = this.#held;
    this.#hold(new Map());
    this.apply([...held.values()]);
  }

  /** Returns what fits the filter, newest first. */
  filtered(filter: RequestFilter): RequestSummary[] {
    const found: RequestSummary[] = [];
    for (let i = this.items.length - 1; i >= 0; i--) {
      const r = this.items[i];
      if (r && matches(r, filter)) found.push(r);
    }
    return found;
  }

  detail(id: string, reveal: boolean, signal: AbortSignal): Promise<RequestDetail> {
    return call<RequestDetail>('GET', path(id, reveal ? '?reveal=true' : ''), { signal });
  }

  async replay(id: string, change?: Replay): Promise<RequestDetail> {
    return call<RequestDetail>('POST', path(id, '/replay'), { body: change });
  }

  async clear(): Promise<void> {
    await call('DELETE', 'requests');
    this.#generation++;
    this.#byId.clear();
    this.#arrived.clear();
    this.#hold(new Map());
    this.#publish();
  }

  /** Returns what fits the filter as an archive, as many as the page holds. */
  async har(filter: RequestFilter): Promise<string> {
    const query = new URLSearchParams({ limit: String(most) });
    if (filter.tunnel) query.set('tunnel_id', filter.tunnel);
    if (filter.kind) query.set('kind', filter.kind);
    // No answer is no status: the archive notes of such requests why there is none.
    const failed = filter.status === 'error';
    if (filter.status && !failed) query.set('status', filter.status);
    if (filter.text.trim()) query.set('q', filter.text.trim());
    const text = await (await send('GET', `requests.har?${query}`)).text();
    if (!failed) return text;
    const har = JSON.parse(text) as { log: { entries: { comment?: string }[] } };
    har.log.entries = har.log.entries.filter((entry) => entry.comment);
    return JSON.stringify(har);
  }

  async importHar(har: unknown): Promise<void> {
    await call('POST', 'requests.har', { body: har });
    await this.load();
  }
}

export const requests = new RequestStore();
