import { call, send } from '../../shared/api/client';
import type { ServerEvent } from '../../shared/api/sse';
import { attended, looked, readEvents } from '../../shared/api/stream';
import { pause } from '../../shared/lib/pause';
import type { Access, AccessPage } from '../api/types';
import { explain } from '../lib/explain';
import { session } from './session.svelte';

/** What to look for; fields left empty look for everything. */
export interface Filter {
  since?: string;
  until?: string;
  host?: string;
  path?: string;
  address?: string;
  user?: string;
  country?: string;
  status?: string;
  method?: string;
  refused?: string;
  client_id?: string;
  node?: string;
}

/** The empty filter, with every field. */
export const nothing: Required<Filter> = {
  since: '',
  until: '',
  host: '',
  path: '',
  address: '',
  user: '',
  country: '',
  status: '',
  method: '',
  refused: '',
  client_id: '',
  node: '',
};

const page = 100;
const kept = 1000;
const retry = 3000;

/** Names an event; those of old relays have no id, but a moment and path. */
export function eventKey(e: Access): string {
  return e.id ?? `${e.time} ${e.visitor} ${e.path ?? ''} ${e.duration_ns}`;
}

// What came live may be in an answer too.
function unique(events: readonly Access[]): Access[] {
  return [...new Map(events.map((e) => [eventKey(e), e])).values()];
}

/** The access log as a page shows it: newest first, with what comes live before it. */
export class AccessLog {
  events = $state.raw<readonly Access[]>();
  next = $state('');
  error = $state('');
  busy = $state(false);
  /** Events that came too fast to be shown live. */
  missed = $state(0);
  #turn = 0;
  #searched = Promise.resolve();
  /** What comes live while a search is under way, which its answer may not have. */
  #meanwhile: Access[] | undefined;

  /** The filter without its empty fields. */
  clean(filter: Filter): Record<string, string> {
    return Object.fromEntries(
      Object.entries(filter).filter((pair): pair is [string, string] => !!pair[1]),
    );
  }

  async search(filter: Filter): Promise<void> {
    const turn = ++this.#turn;
    this.missed = 0;
    this.#meanwhile = [];
    this.#searched = this.#ask(filter, '', (found, next) => {
      this.events = unique([...(this.#meanwhile ?? []), ...found]);
      this.next = next;
    });
    await this.#searched;
    if (turn === this.#turn) this.#meanwhile = undefined;
  }

  async more(filter: Filter): Promise<void> {
    await this.#ask(filter, this.next, (found, next) => {
      this.events = unique([...(this.events ?? []), ...found]);
      this.next = next;
    });
  }

  /** Brings in what came before the stream was there, above what was there. */
  async #catchUp(filter: Filter, signal: AbortSignal): Promise<void> {
    await this.#searched;
    if (signal.aborted) return;
    const before = this.events ?? [];
    const old = new Set(before.map(eventKey));
    await this.#ask(filter, '', (found, next) => {
      const fresh = (this.events ?? []).filter((e) => !old.has(eventKey(e)));
      const meet = found.some((e) => old.has(eventKey(e)));
      this.events = unique([...fresh, ...found, ...(meet ? before : [])]);
      // Else there is more between the two than is asked for at once.
      if (!meet) this.next = next;
    });
  }

  /** Asks, and takes the answer unless something else is looked for by then. */
  async #ask(
    filter: Filter,
    cursor: string,
    take: (found: Access[], next: string) => void,
  ): Promise<void> {
    const turn = this.#turn;
    this.busy = true;
    try {
      const query = new URLSearchParams({ ...this.clean(filter), limit: String(page) });
      if (cursor) query.set('cursor', cursor);
      const answer = await call<AccessPage>('GET', `access?${query.toString()}`);
      if (turn !== this.#turn) return;
      take(answer.items, answer.next ?? '');
      this.error = '';
    } catch (error) {
      session.met(error);
      if (turn === this.#turn) this.error = explain(error);
    } finally {
      if (turn === this.#turn) this.busy = false;
    }
  }

  /** Shows events as they come; returns the end of it. */
  follow(filter: Filter): () => void {
    if (session.ended) return () => undefined;
    const end = new AbortController();
    void this.#stream(filter, end.signal);
    return () => end.abort();
  }

  async #stream(filter: Filter, signal: AbortSignal): Promise<void> {
    const query = new URLSearchParams(this.clean({ ...filter, since: '', until: '' }));
    while (!signal.aborted) {
      try {
        const resting = await attended(signal, async (mine, heard) => {
          const answer = await send('GET', `access/live?${query.toString()}`, {
            signal: mine,
            headers: { Accept: 'text/event-stream' },
          });
          void this.#catchUp(filter, mine);
          await readEvents(answer, heard, (events) => this.#take(events));
        });
        if (resting) {
          await looked(signal);
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        session.met(error);
      }
      await pause(retry, signal);
    }
  }

  #take(events: readonly ServerEvent[]): void {
    const fresh: Access[] = [];
    for (const e of events) {
      if (e.name === 'access') fresh.unshift(JSON.parse(e.data) as Access);
      else if (e.name === 'missed')
        this.missed += (JSON.parse(e.data) as { count?: number }).count ?? 1;
    }
    if (fresh.length === 0) return;
    this.#meanwhile?.unshift(...fresh);
    const room = Math.max(kept, this.events?.length ?? 0);
    this.events = unique([...fresh, ...(this.events ?? [])]).slice(0, room);
  }
}
