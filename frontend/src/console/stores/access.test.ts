import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Access } from '../api/types';
import { AccessLog } from './access.svelte';

interface Asked {
  path: string;
  query: URLSearchParams;
  answer: (items: Access[], next?: string) => void;
}
let asked: Asked[];
let streams: ReadableStreamDefaultController<Uint8Array>[];
let page: EventTarget & { baseURI: string; hidden: boolean };

const event = (n: number) => ({ id: `e${n}`, time: '2026-01-01T00:00:00Z' }) as Access;
const live = (n: number) =>
  new TextEncoder().encode(`event: access\ndata: ${JSON.stringify(event(n))}\n\n`);
const ids = (log: AccessLog) => log.events?.map((e) => e.id).join(' ');

beforeEach(() => {
  asked = [];
  streams = [];
  vi.useFakeTimers();
  vi.stubGlobal('location', { hostname: '127.0.0.1' });
  page = Object.assign(new EventTarget(), { baseURI: 'http://127.0.0.1:37280/', hidden: false });
  vi.stubGlobal('document', page);
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(url);
    const path = pathname.slice('/api/v1/'.length);
    return new Promise<Response>((done, no) => {
      init.signal?.addEventListener('abort', () => {
        no(new DOMException('aborted', 'AbortError'));
        for (const s of streams.splice(0)) s.error(new DOMException('aborted', 'AbortError'));
      });
      const answer = (items: Access[], next?: string) =>
        done(Response.json({ data: { items, next } }));
      asked.push({ path, query: searchParams, answer });
      if (path === 'access/live')
        done(new Response(new ReadableStream({ start: (c) => void streams.push(c) })));
    });
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('AccessLog', () => {
  it('goes on where the last search left off, whatever a slow answer says', async () => {
    const log = new AccessLog();
    const slow = log.search({ host: 'old' });
    const quick = log.search({ host: 'new' });
    asked[1]?.answer([event(1)], 'after-new');
    await quick;
    expect([log.busy, log.next]).toEqual([false, 'after-new']);
    asked[0]?.answer([event(9)], 'after-old');
    await slow;
    expect([ids(log), log.next]).toEqual(['e1', 'after-new']);
    void log.more({ host: 'new' });
    expect(asked[2]?.query.get('cursor')).toBe('after-new');
  });

  it('has no hole between what is found and what comes live', async () => {
    const log = new AccessLog();
    const first = log.search({});
    const end = log.follow({});
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(live(4)); // sooner than the answer, which was made before it
    await vi.advanceTimersByTimeAsync(10);
    asked[0]?.answer([event(2), event(1)], 'older');
    await first;
    expect(ids(log)).toBe('e4 e2 e1');
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(live(5));
    await vi.advanceTimersByTimeAsync(10);
    asked.at(-1)?.answer([event(4), event(3), event(2), event(1)], 'cursor');
    await vi.advanceTimersByTimeAsync(10);
    expect([ids(log), log.next]).toEqual(['e5 e4 e3 e2 e1', 'older']);
    end();
  });

  it('has no hole where the stream was away', async () => {
    const log = new AccessLog();
    const first = log.search({});
    asked[0]?.answer([event(2), event(1)], 'older');
    await first;
    const end = log.follow({});
    await vi.advanceTimersByTimeAsync(10);
    streams[0]?.enqueue(live(3));
    await vi.advanceTimersByTimeAsync(10);
    expect(ids(log)).toBe('e3 e2 e1');
    streams.pop()?.error(new TypeError('network error'));
    await vi.advanceTimersByTimeAsync(3500);
    streams[0]?.enqueue(live(6));
    await vi.advanceTimersByTimeAsync(10);
    asked.at(-1)?.answer([event(5), event(4), event(3)], 'cursor');
    await vi.advanceTimersByTimeAsync(10);
    expect([ids(log), log.next]).toEqual(['e6 e5 e4 e3 e2 e1', 'older']);
    end();
  });

  it('begins anew where more came meanwhile than is asked for at once', async () => {
    const log = new AccessLog();
    const first = log.search({});
    asked[0]?.answer([event(1)]);
    await first;
    const end = log.follow({});
    await vi.advanceTimersByTimeAsync(10);
    streams.pop()?.error(new TypeError('network error'));
    await vi.advanceTimersByTimeAsync(3500);
    asked.at(-1)?.answer([event(300), event(299)], 'cursor');
    await vi.advanceTimersByTimeAsync(10);
    expect([ids(log), log.next]).toEqual(['e300 e299', 'cursor']);
    end();
  });

  it('gives its connection back while nobody looks, and has no hole then', async () => {
    const look = (hidden: boolean) => {
      page.hidden = hidden;
      page.dispatchEvent(new Event('visibilitychange'));
    };
    const opened = () => asked.filter((a) => a.path === 'access/live').length;
    const log = new AccessLog();
    const first = log.search({});
    asked[0]?.answer([event(1)], 'older');
    await first;
    const end = log.follow({});
    look(true);
    await vi.advanceTimersByTimeAsync(9_000);
    look(false);
    await vi.advanceTimersByTimeAsync(15_000);
    expect([opened(), streams.length]).toEqual([1, 1]);

    streams[0]?.enqueue(live(2));
    look(true);
    await vi.advanceTimersByTimeAsync(600_000);
    expect([opened(), streams.length, ids(log)]).toEqual([1, 0, 'e2 e1']);

    look(false);
    await vi.advanceTimersByTimeAsync(10);
    expect(opened()).toBe(2);
    asked.at(-1)?.answer([event(3), event(2)], 'cursor');
    await vi.advanceTimersByTimeAsync(10);
    expect([ids(log), log.next]).toEqual(['e3 e2 e1', 'older']);
    end();
  });

  it('opens a stream anew that has fallen silent', async () => {
    const log = new AccessLog();
    const end = log.follow({});
    await vi.advanceTimersByTimeAsync(45_000);
    expect(asked.filter((a) => a.path === 'access/live')).toHaveLength(2);
    end();
  });
});
