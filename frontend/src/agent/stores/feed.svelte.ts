import { Problem, send, Unreachable, whenUnsure } from '../api/client';
import type { ServerEvent } from '../../shared/api/sse';
import { attended, looked, readEvents } from '../../shared/api/stream';
import { pause } from '../../shared/lib/pause';
import { fresh } from '../../shared/stores/fresh.svelte';
import type { EndpointEvent, Events, LogEntry, RequestSummary, TunnelEvent } from '../api/types';
import { logs } from './logs.svelte';
import { requests } from './requests.svelte';
import { status } from './status.svelte';
import { tunnels } from './tunnels.svelte';

/**
 * The page's link with the daemon. `lost` comes back by itself; `denied` is
 * the browser's refusal to reach loopback; `locked` asks for the Bearer token;
 * `refused` is any other refusal, with its reason.
 */
export type Link = 'starting' | 'live' | 'lost' | 'denied' | 'locked' | 'refused';

const firstRetry = 500;
const lastRetry = 4000;
const helpless = 30_000;
// Events within this time are one update of the page.
const batchFor = 80;

/** A list that the page is of use without for a while. */
interface List {
  load(): Promise<void>;
}

class Feed {
  link = $state<Link>('starting');
  reason = $state('');
  /** Whether what is shown is of now: the stream is open, and all is here. */
  following = false;
  /** How often the daemon has asked for the Bearer token. */
  asked = $state(0);
  #lastId = '';
  #daemon = '';
  /** What could not be loaded: events alone do not make up for it. */
  #lacking = new Set<List>();
  /** What is being loaded besides, until it has come through. */
  #filling = new Map<List, AbortController>();
  #batch: ServerEvent[] = [];
  // eslint-disable-next-line no-unused-private-class-members -- read by ??=
  #flushing: ReturnType<typeof setTimeout> | undefined;
  #wake: () => void = () => undefined;

  /** Follows the daemon until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = () => this.#wake();
    addEventListener('online', wake, { signal });
    document.addEventListener('visibilitychange', wake, { signal });
    const certain = whenUnsure(() => this.#reread());
    signal.addEventListener('abort', certain, { once: true });
    signal.addEventListener('abort', () => this.#fillNoMore(), { once: true });
    let wait = firstRetry;
    while (!signal.aborted) {
      try {
        const resting = await attended(signal, (mine, heard) =>
          this.#follow(mine, heard, () => (wait = firstRetry)),
        );
        if (resting) {
          await looked(signal);
          continue;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#lose(error);
      }
      // Only a person mends what is not merely lost.
      await this.#sleep(this.link === 'lost' ? wait : helpless, signal);
      wait = Math.min(wait * 2, lastRetry);
    }
  }

  /** Tries again now, for instance after a token was given. */
  retry(): void {
    this.#wake();
  }

  /** Loads again now what could not be loaded. */
  refill(): void {
    this.#fill(...this.#lacking);
  }

  #lose(error: unknown): void {
    this.reason = error instanceof Problem ? error.message : '';
    if (error instanceof Problem && error.status === 401) {
      this.link = 'locked';
      this.asked++;
    } else if (error instanceof Problem && error.status === 403) this.link = 'refused';
    else if (error instanceof Unreachable && error.denied) this.link = 'denied';
    else this.link = 'lost';
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const wake = new AbortController();
    this.#wake = () => wake.abort();
    await pause(ms, signal, wake.signal);
  }

  async #follow(signal: AbortSignal, heard: () => void, alive: () => void): Promise<void> {
    try {
      const resumed = await this.#knownDaemon(signal);
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (resumed) headers['Last-Event-ID'] = this.#lastId;
      const answer = await send('GET', 'events', { headers, signal });
      // The stream is open, so nothing is lost between the lists and the events.
      if (!resumed) await this.#load(signal);
      signal.throwIfAborted();
      this.following = true;
      this.link = 'live';
      this.reason = '';
      alive();
      await readEvents(answer, heard, (events) => this.#take(events));
      throw new Unreachable(false);
    } finally {
      this.following = false;
    }
  }

  /** Reports whether this is the daemon whose lists are here, and whose events were followed. */
  async #knownDaemon(signal: AbortSignal): Promise<boolean> {
    await status.load(signal);
    const daemon = `${status.current?.pid} ${status.current?.started_at}`;
    const known = daemon === this.#daemon && this.#lastId !== '' && this.#lacking.size === 0;
    // Another daemon may be of another version, with another page.
    if (this.#daemon && daemon !== this.#daemon) void fresh.check();
    this.#daemon = daemon;
    if (!known) this.#lastId = '';
    return known;
  }

  async #load(signal: AbortSignal): Promise<void> {
    this.#fill(requests, logs);
    await Promise.all([tunnels.load(signal), status.loadAuth(signal)]);
  }

  /** A change may have been made, whose answer was lost. */
  #reread(): void {
    this.#fill(status, tunnels);
    void status.loadAuth();
  }

  /** Loads lists again and again until they have come through. */
  #fill(...lists: List[]): void {
    for (const list of lists) void this.#fillOne(list);
  }

  async #fillOne(list: List): Promise<void> {
    this.#filling.get(list)?.abort();
    const mine = new AbortController();
    this.#filling.set(list, mine);
    this.#lacking.delete(list);
    for (let wait = lastRetry; !mine.signal.aborted; wait = Math.min(wait * 2, helpless)) {
      const came = await list.load().then(
        () => true,
        () => false,
      );
      // What is loaded anew meanwhile is that turn's to tell.
      if (mine.signal.aborted) return;
      if (came) return void this.#lacking.delete(list);
      this.#lacking.add(list);
      await pause(wait, mine.signal);
    }
  }

  #fillNoMore(): void {
    for (const one of this.#filling.values()) one.abort();
  }

  #take(events: ServerEvent[]): void {
    if (events.length === 0) return;
    this.#batch.push(...events);
    this.#lastId = events.at(-1)?.id || this.#lastId;
    this.#flushing ??= setTimeout(() => {
      this.#flushing = undefined;
      this.#flush();
    }, batchFor);
  }

  #flush(): void {
    const batch = this.#batch;
    this.#batch = [];
    const tunnelEvents: TunnelEvent[] = [];
    const endpointEvents: EndpointEvent[] = [];
    const requestEvents: RequestSummary[] = [];
    const logEvents: LogEntry[] = [];
    for (const event of batch) {
      const data: unknown = JSON.parse(event.data);
      switch (event.name as keyof Events) {
        case 'status':
          status.apply(data as Events['status']);
          break;
        case 'tunnel':
          tunnelEvents.push(data as TunnelEvent);
          break;
        case 'endpoint':
          endpointEvents.push(data as EndpointEvent);
          break;
        case 'request':
          requestEvents.push(data as RequestSummary);
          break;
        case 'cleared': // by whichever page: those that came before are gone
          requestEvents.length = 0;
          this.#fill(requests);
          break;
        case 'log':
          logEvents.push(data as LogEntry);
          break;
        case 'missed':
          this.#fill(status, requests, logs, tunnels);
          void status.loadAuth();
      }
    }
    tunnels.apply(tunnelEvents, endpointEvents);
    requests.apply(requestEvents);
    logs.apply(logEvents);
  }
}

export const feed = new Feed();
