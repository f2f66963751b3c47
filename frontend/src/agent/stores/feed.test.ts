import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Status } from '../api/types';
import { summary, tunnel } from '../../../e2e/fixtures';
import { feed } from './feed.svelte';
import { logs } from './logs.svelte';
import { requests } from './requests.svelte';
import { status } from './status.svelte';
import { tunnels } from './tunnels.svelte';

/** How each path is answered; what is not here never is. */
let answers: Record<string, (init: RequestInit) => Promise<Response>>;
let asked: string[];
let streams: ReadableStreamDefaultController<Uint8Array>[];
let page: AbortController;
let seen: EventTarget & { baseURI: string; hidden: boolean };

const data = (body: unknown) => () => Promise.resolve(Response.json({ data: body }));
const broken = () => Promise.reject(new TypeError('Failed to fetch'));
const event = (id: number, name: string, body: unknown) =>
  new TextEncoder().encode(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(body)}\n\n`);

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  streams = [];
  page = new AbortController();
  const daemon = { pid: 1, started_at: `${Math.random()}`, state: 'connected' } as Partial<Status>;
  answers = {
    status: data(daemon),
    tunnels: data({ items: [] }),
    endpoints: data({ items: [] }),
    'auth/status': data({}),
    requests: data({ items: [summary(1)] }),
    logs: data({ items: [] }),
    events: () =>
      Promise.resolve(new Response(new ReadableStream({ start: (c) => void streams.push(c) }))),
  };
  vi.stubGlobal('location', { hostname: '127.0.0.1' });
  vi.stubGlobal('addEventListener', () => undefined);
  seen = Object.assign(new EventTarget(), { baseURI: 'http://127.0.0.1:37271/', hidden: false });
  vi.stubGlobal('document', seen);
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    const path = new URL(url).pathname.slice('/api/v1/'.length);
    asked.push(path);
    const gone = new Promise<Response>((_, no) => {
      init.signal?.addEventListener('abort', () => no(new DOMException('aborted', 'AbortError')));
    });
    return Promise.race([answers[path]?.(init) ?? gone, gone]);
  });
});

afterEach(async () => {
  page.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const times = (path: string) => asked.filter((p) => p === path).length;

describe('feed', () => {
  it('loads again what it could not load, although the events go on', async () => {
    answers.requests = broken;
    answers.logs = broken;
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(event(7, 'request', summary(2)));
    await vi.advanceTimersByTimeAsync(200);
    expect([feed.link, requests.items.length, logs.loaded]).toEqual(['live', 1, false]);

    answers.requests = data({ items: [summary(2), summary(1)] });
    answers.logs = data({ items: [] });
    streams[0]?.error(new TypeError('network error'));
    await vi.advanceTimersByTimeAsync(2000);
    expect([feed.link, requests.items.length, logs.loaded]).toEqual(['live', 2, true]);

    // What is whole is not loaded twice.
    streams[1]?.enqueue(event(8, 'request', summary(3)));
    await vi.advanceTimersByTimeAsync(200);
    const before = times('requests');
    streams[1]?.error(new TypeError('network error'));
    await vi.advanceTimersByTimeAsync(2000);
    expect([times('requests'), requests.items.length]).toEqual([before, 3]);
  });

  it('loads a list again by itself while the events go on, and at once when asked to', async () => {
    answers.requests = () =>
      Promise.resolve(
        Response.json({ error: { code: 'internal', message: 'broken' } }, { status: 500 }),
      );
    answers.logs = broken;
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    expect(requests.problem).toMatchObject({ message: 'broken' });
    answers.logs = data({ items: [] });
    await vi.advanceTimersByTimeAsync(4_100);
    expect([feed.link, times('logs'), logs.problem]).toEqual(['live', 2, undefined]);
    expect(times('requests')).toBe(2);

    answers.requests = data({ items: [summary(1)] });
    feed.refill();
    await vi.advanceTimersByTimeAsync(10);
    expect([times('requests'), times('logs'), requests.problem]).toEqual([3, 2, undefined]);
    streams[0]?.enqueue(new TextEncoder().encode(': alive\n\n'));
    await vi.advanceTimersByTimeAsync(35_000);
    expect([times('requests'), times('events')]).toEqual([3, 1]);
  });

  it('reads the state again when the answer to a change was lost', async () => {
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    expect([tunnels.items.length, times('status')]).toEqual([0, 1]);
    const made = tunnel(1);
    answers.tunnels = (init) =>
      init.method === 'GET' ? data({ items: [made] })() : Promise.reject(new TypeError('cut'));
    const error: unknown = await tunnels.create({ local_port: 80 }).catch((e: unknown) => e);
    expect(error).toMatchObject({ unsure: true });
    await vi.advanceTimersByTimeAsync(10);
    expect([tunnels.items.length, times('status'), times('auth/status')]).toEqual([1, 2, 2]);
    expect([times('events'), times('requests')], 'the stream goes on').toEqual([1, 1]);
  });

  it('reads everything again where events were missed, the state too', async () => {
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(event(7, 'status', { state: 'reconnecting', bytes: { in: 0, out: 0 } }));
    await vi.advanceTimersByTimeAsync(200);
    expect(status.current?.state).toBe('reconnecting');
    // A page that was too slow is told so in the stream that it has.
    streams[0]?.enqueue(event(3000, 'missed', { missed: 900 }));
    await vi.advanceTimersByTimeAsync(200);
    expect([status.current?.state, times('events')]).toEqual(['connected', 1]);
    expect([times('tunnels'), times('requests'), times('logs')]).toEqual([2, 2, 2]);
  });

  it('forgets the requests that another page has cleared', async () => {
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    expect(requests.items.length).toBe(1);
    answers.requests = data({ items: [] });
    streams[0]?.enqueue(event(7, 'request', summary(2)));
    streams[0]?.enqueue(event(8, 'cleared', { requests: 2 }));
    streams[0]?.enqueue(event(9, 'request', summary(3)));
    await vi.advanceTimersByTimeAsync(200);
    expect(requests.items.map((r) => r.id)).toEqual([summary(3).id]);
  });

  it('gives its connection back while nobody looks', async () => {
    const look = (hidden: boolean) => {
      seen.hidden = hidden;
      seen.dispatchEvent(new Event('visibilitychange'));
    };
    let ended = 0;
    answers.events = (init) => {
      init.signal?.addEventListener('abort', () => {
        ended++;
        streams.at(-1)?.error(new DOMException('aborted', 'AbortError'));
      });
      return Promise.resolve(
        new Response(new ReadableStream({ start: (c) => void streams.push(c) })),
      );
    };
    void feed.run(page.signal);
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(event(7, 'request', summary(2)));
    look(true);
    await vi.advanceTimersByTimeAsync(5_000);
    look(false);
    await vi.advanceTimersByTimeAsync(15_000);
    expect([times('events'), ended]).toEqual([1, 0]);

    streams[0]?.enqueue(new TextEncoder().encode(': alive\n\n'));
    look(true);
    await vi.advanceTimersByTimeAsync(11_000);
    expect([times('events'), ended, feed.link, feed.following]).toEqual([1, 1, 'live', false]);
    await vi.advanceTimersByTimeAsync(600_000);
    expect([times('events'), times('status')]).toEqual([1, 1]);

    look(false);
    await vi.advanceTimersByTimeAsync(10);
    expect([times('events'), times('status'), feed.following]).toEqual([2, 2, true]);
    streams[1]?.enqueue(event(8, 'request', summary(3)));
    await vi.advanceTimersByTimeAsync(200);
    expect([times('requests'), requests.items.length]).toEqual([1, 3]);
  });

  it.each(['status', 'tunnels', 'auth/status', 'events'])(
    'gives up on a daemon that takes the question for %s and never answers',
    async (path) => {
      const answer = answers[path];
      answers[path] = () => new Promise(() => undefined);
      void feed.run(page.signal);
      await vi.advanceTimersByTimeAsync(41_000);
      expect(feed.link).toBe('lost');
      if (answer) answers[path] = answer;
      await vi.advanceTimersByTimeAsync(45_000);
      expect(feed.link).toBe('live');
    },
  );
});
