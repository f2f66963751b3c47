import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Problem, retryBusy } from '../api/client';
import type { LogEntry, RequestSummary, Status } from '../api/types';
import { tunnel, endpoint, summary } from '../../../e2e/fixtures';
import { LogStore } from './logs.svelte';
import { matches, most, noFilter, RequestStore } from './requests.svelte';
import { StatusStore } from './status.svelte';
import { TunnelStore } from './tunnels.svelte';

let answers: Record<string, unknown>;
let asked: string[];

beforeEach(() => {
  asked = [];
  answers = {};
  vi.stubGlobal('document', { baseURI: 'http://127.0.0.1:37271/' });
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    const key = `${init.method} ${url.slice('http://127.0.0.1:37271/api/v1/'.length)}`;
    asked.push(key);
    const answer = answers[key];
    // Several are given one after the other.
    const found: unknown = Array.isArray(answer) ? answer.shift() : answer;
    if (found instanceof Problem)
      return Promise.resolve(
        Response.json(
          { error: { code: found.code, message: found.message } },
          { status: found.status },
        ),
      );
    return Promise.resolve(
      found === undefined ? new Response(null, { status: 204 }) : Response.json({ data: found }),
    );
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('TunnelStore', () => {
  const a = tunnel(1, { name: 'a' });
  const b = tunnel(2, { name: 'b' });
  const c = tunnel(3, { name: 'c' });
  const udp = { type: 'udp' as const, local_ip: '127.0.0.1' };
  const refused = new Problem(400, { code: 'relay_rejected', message: 'taken' });

  async function loaded(): Promise<TunnelStore> {
    answers['GET tunnels'] = { items: [b, a] };
    answers['GET endpoints'] = { items: [endpoint(a)] };
    const store = new TunnelStore();
    await store.load();
    return store;
  }

  it('lists the oldest first', async () => {
    const store = await loaded();
    expect(store.items.map((t) => t.name)).toEqual(['a', 'b']);
    expect([...store.endpoints.keys()]).toEqual([a.id]);
  });

  it('replaces no policy but the one that was read', async () => {
    const sent: (string | undefined)[] = [];
    vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
      sent.push((init.headers as Record<string, string>)['If-Match']);
      const tag = `"${sent.length}"`;
      return Promise.resolve(Response.json({ data: { policy: {} } }, { headers: { ETag: tag } }));
    });
    const store = new TunnelStore();
    const { tag } = await store.policy(a.id);
    const next = await store.setPolicy(a.id, {}, tag);
    await store.setPolicy(a.id, {}, next.tag);
    await store.setPolicy(a.id, {}, null);
    expect(sent).toEqual([undefined, '"1"', '"2"', undefined]);
  });

  it('makes the tunnels of all ports or of none', async () => {
    const store = await loaded();
    const wanted = [27_015, 27_016].map((local_port) => ({ ...udp, local_port }));
    answers['POST tunnels'] = [c, refused];
    await expect(store.createAll(wanted)).rejects.toMatchObject({ port: 27_016, left: [] });
    expect(asked.slice(-3)).toEqual(['POST tunnels', 'POST tunnels', `DELETE tunnels/${c.id}`]);
    expect(store.items.map((t) => t.name)).toEqual(['a', 'b']);
  });

  it('says which tunnels of a range it could not take back', async () => {
    const store = await loaded();
    answers['POST tunnels'] = [c, refused];
    answers[`DELETE tunnels/${c.id}`] = refused;
    const wanted = [1, 2].map((local_port) => ({ ...udp, local_port }));
    await expect(store.createAll(wanted)).rejects.toMatchObject({ port: 2, left: ['c'] });
    expect(store.items.map((t) => t.name)).toEqual(['a', 'b', 'c']);
  });

  it('has nothing to take back of a single tunnel', async () => {
    const store = await loaded();
    answers['POST tunnels'] = refused;
    await expect(store.createAll([{ ...udp, local_port: 1 }])).rejects.toBeInstanceOf(Problem);
  });

  it('follows events', async () => {
    const store = await loaded();
    store.apply(
      [
        { action: 'created', tunnel: c },
        { action: 'deleted', tunnel: a },
        { action: 'changed', tunnel: { ...b, state: 'failed' } },
      ],
      [
        { action: 'down', endpoint: endpoint(a) },
        { action: 'up', endpoint: endpoint(c) },
      ],
    );
    expect(store.items.map((t) => `${t.name} ${t.state}`)).toEqual(['b failed', 'c running']);
    expect([...store.endpoints.keys()]).toEqual([c.id]);
  });

  it('is not misled by an old endpoint that goes after its successor came', async () => {
    const store = await loaded();
    store.apply([], [{ action: 'up', endpoint: { ...endpoint(a), id: 'e_new' } }]);
    store.apply([], [{ action: 'down', endpoint: endpoint(a) }]);
    expect(store.endpoints.get(a.id)?.id).toBe('e_new');
  });

  it('keeps what events bring while the lists are on their way', async () => {
    const store = await loaded();
    const loading = store.load();
    store.apply(
      [
        { action: 'changed', tunnel: { ...a, name: 'newer' } },
        { action: 'deleted', tunnel: b },
      ],
      [{ action: 'up', endpoint: { ...endpoint(a), id: 'e_new' } }],
    );
    await loading;
    expect(store.items.map((t) => t.name)).toEqual(['newer']);
    expect(store.endpoints.get(a.id)?.id).toBe('e_new');
  });

  it('hides a tunnel at once and deletes it later', async () => {
    const store = await loaded();
    vi.useFakeTimers();
    store.deleteSoon(a.id, () => undefined, 100);
    expect(store.items).toEqual([b]);
    store.apply([{ action: 'changed', tunnel: a }], []);
    expect(store.items, 'an event must not bring it back').toEqual([b]);
    expect([...store.endpoints.keys()]).toEqual([]);
    store.apply([], [{ action: 'changed', endpoint: endpoint(a) }]);
    expect([...store.endpoints.keys()], 'an event must not bring it back').toEqual([]);
    expect(asked).not.toContain(`DELETE tunnels/${a.id}`);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toContain(`DELETE tunnels/${a.id}`);
    expect(store.items).toEqual([b]);
    expect([...store.endpoints.keys()]).toEqual([]);
  });

  it('lets one deletion wait at most', async () => {
    const store = await loaded();
    vi.useFakeTimers();
    const heard: unknown[] = [];
    store.deleteSoon(a.id, (error) => heard.push(error), 100);
    store.deleteSoon(b.id, (error) => heard.push(error), 100);
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toContain(`DELETE tunnels/${a.id}`);
    expect(asked).not.toContain(`DELETE tunnels/${b.id}`);
    expect(store.items).toEqual([]);
    await vi.advanceTimersByTimeAsync(50);
    store.undoDelete(b.id);
    expect(store.items).toEqual([b]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked.filter((one) => one === `DELETE tunnels/${a.id}`)).toHaveLength(1);
    expect(asked).not.toContain(`DELETE tunnels/${b.id}`);
    expect(heard).toEqual([]);
  });

  it('never asks for a deletion that was undone', async () => {
    const store = await loaded();
    vi.useFakeTimers();
    store.deleteSoon(a.id, () => undefined, 100);
    store.undoDelete(a.id);
    expect(store.items).toHaveLength(2);
    expect([...store.endpoints.keys()]).toEqual([a.id]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).not.toContain(`DELETE tunnels/${a.id}`);
  });

  it('shows a tunnel again whose deletion was refused', async () => {
    const store = await loaded();
    answers[`DELETE tunnels/${a.id}`] = new Problem(400, { code: 'relay_rejected', message: 'no' });
    vi.useFakeTimers();
    const heard: unknown[] = [];
    store.deleteSoon(a.id, (error) => heard.push(error), 100);
    await vi.advanceTimersByTimeAsync(100);
    await vi.waitFor(() => expect(heard).toHaveLength(1));
    expect(store.items).toHaveLength(2);
  });

  it('takes what another tab has deleted meanwhile for deleted', async () => {
    const store = await loaded();
    answers[`DELETE tunnels/${a.id}`] = new Problem(404, { code: 'not_found', message: 'none' });
    vi.useFakeTimers();
    const heard: unknown[] = [];
    store.deleteSoon(a.id, (error) => heard.push(error), 100);
    await vi.advanceTimersByTimeAsync(100);
    await vi.waitFor(() => expect(asked).toContain(`DELETE tunnels/${a.id}`));
    await vi.advanceTimersByTimeAsync(100);
    expect(heard).toEqual([]);
    expect(store.items).toEqual([b]);
  });

  it('deletes what waits when the page goes', async () => {
    const store = await loaded();
    vi.useFakeTimers();
    store.deleteSoon(a.id, () => undefined);
    store.flush();
    expect(asked).toContain(`DELETE tunnels/${a.id}`);
  });
});

describe('RequestStore', () => {
  const newestFirst = (count: number) =>
    Array.from({ length: count }, (_, i) => summary(count - i, { kind: 'http' }));

  it('loads page by page and keeps what came meanwhile', async () => {
    const all = newestFirst(1500);
    answers['GET requests?limit=1000'] = { items: all.slice(0, 1000) };
    answers[`GET requests?limit=1000&before=${all[999]?.id}`] = { items: all.slice(1000) };
    const store = new RequestStore();
    const loading = store.load();
    store.apply([summary(2000, { kind: 'http' })]);
    await loading;
    expect(store.items).toHaveLength(1501);
    expect(store.filtered(noFilter)[0]?.id).toBe('r_2000');
    expect(store.filtered(noFilter).at(-1)?.id).toBe('r_1');
  });

  it('exports as many as the page holds, of what is looked for', async () => {
    const store = new RequestStore();
    answers['GET requests.har?limit=10000&tunnel_id=t_1&kind=http&status=4xx&q=%2Fcart'] = 'all';
    const filter = { text: ' /cart ', tunnel: 't_1', kind: 'http', status: '4xx' } as const;
    expect(await store.har(filter)).toContain('all');
  });

  it('keeps its bound', () => {
    const store = new RequestStore();
    store.apply(newestFirst(most + 50).reverse());
    expect(store.items).toHaveLength(most);
    expect(store.items[0]?.id).toBe('r_51');
  });

  it('changes a request in its place', () => {
    const store = new RequestStore();
    store.apply([summary(1, { state: 'open' }), summary(2)]);
    store.apply([summary(1, { state: 'done', kind: 'http' })]);
    expect(store.items.map((r) => `${r.id} ${r.state}`)).toEqual(['r_1 done', 'r_2 done']);
  });

  it('stands still while paused', () => {
    const store = new RequestStore();
    store.setPaused(true);
    store.apply([summary(1), summary(1), summary(2)]);
    expect([store.items.length, store.waiting]).toEqual([0, 2]);
    store.setPaused(false);
    expect([store.items.length, store.waiting]).toEqual([2, 0]);
  });

  it('has nothing held back of a daemon that is no more', async () => {
    const store = new RequestStore();
    store.setPaused(true);
    store.apply([summary(1, { path: '/before' }), summary(2, { path: '/before' })]);
    // The next daemon counts from one again.
    answers['GET requests?limit=1000'] = { items: [summary(1, { path: '/now' })] };
    const loading = store.load();
    store.apply([summary(1, { path: '/now', state: 'done' })]);
    await loading;
    expect(store.waiting).toBe(1);
    store.setPaused(false);
    expect(store.items.map((r) => `${r.id} ${r.path} ${r.state}`)).toEqual(['r_1 /now done']);
  });

  it('keeps its bound while paused, too', () => {
    const store = new RequestStore();
    store.setPaused(true);
    for (let n = 0; n < most + 50; n += 50)
      store.apply(Array.from({ length: 50 }, (_, i) => summary(n + i + 1)));
    expect(store.waiting).toBe(most);
    store.setPaused(false);
    expect(store.items[0]?.id).toBe('r_51');
  });

  it.each<[Partial<typeof noFilter>, boolean]>([
    [{}, true],
    [{ text: 'ORDERS' }, true],
    [{ text: ' orders ' }, true],
    [{ text: '203.0.113' }, true],
    [{ text: 'nothing' }, false],
    [{ text: 'orders/订单' }, true],
    [{ text: '单子' }, false],
    [{ text: '\ud83d' }, false],
    [{ status: '4xx' }, true],
    [{ status: '2xx' }, false],
    [{ status: 'error' }, false],
    [{ kind: 'flow' }, false],
    [{ tunnel: 't_9' }, false],
  ])('filter %j: %s', (change, want) => {
    const r: RequestSummary = summary(1, {
      kind: 'http',
      path: '/Orders/%E8%AE%A2%e5%8d%95',
      status: 404,
    });
    expect(matches(r, { ...noFilter, ...change })).toBe(want);
  });
});

describe('StatusStore', () => {
  const at = (inward: number, out: number, started = '2026-01-01T00:00:00Z') =>
    ({ started_at: started, bytes: { in: inward, out } }) as Status;

  it('takes rates from what was counted', () => {
    const store = new StatusStore();
    store.apply(at(0, 0));
    store.sample(1000);
    store.current = at(500, 4000);
    store.sample(3000);
    expect(store.samples).toEqual([
      { at: 2000, in: 250, out: 2000 },
      { at: 3000, in: 250, out: 2000 },
    ]);
  });

  it('does not take a restart for traffic', () => {
    const store = new StatusStore();
    store.current = at(9000, 9000);
    store.sample(1000);
    store.current = at(10, 10, '2026-01-01T00:00:05Z');
    store.sample(2000);
    expect(store.samples).toEqual([]);
    store.sample(3000);
    expect(store.samples).toEqual([{ at: 3000, in: 0, out: 0 }]);
  });

  it('has one sample for each second, also where the browser let the page sleep', () => {
    const store = new StatusStore();
    store.current = at(0, 0);
    store.sample(1000);
    store.current = at(6000, 0);
    store.sample(61_000);
    expect(store.samples).toHaveLength(60);
    expect(store.samples.at(0)).toEqual({ at: 2000, in: 100, out: 0 });
    expect(store.samples.at(-1)).toEqual({ at: 61_000, in: 100, out: 0 });
    store.sample(61_000 + 86_400_000);
    expect(store.samples).toHaveLength(180);
  });
});

describe('LogStore', () => {
  const line = (n: number, level: LogEntry['level'] = 'info'): LogEntry => ({
    time: new Date(n * 1000).toISOString(),
    level,
    message: `line ${n}`,
  });

  it('shows a line once that is both in the list and in the stream', async () => {
    answers['GET logs?level=debug&limit=1000'] = { items: [line(1), line(2)] };
    const store = new LogStore();
    const loading = store.load();
    store.apply([line(2), line(3)]);
    await loading;
    store.apply([line(2), line(4)]);
    expect(store.items.map((l) => l.message)).toEqual(['line 1', 'line 2', 'line 3', 'line 4']);
  });

  it('filters by level and text', () => {
    const store = new LogStore();
    store.apply([line(1, 'debug'), line(2, 'warn'), line(3, 'error')]);
    expect(store.filtered('warn', '')).toHaveLength(2);
    expect(store.filtered('debug', 'LINE 3')).toHaveLength(1);
  });
});

describe('retryBusy', () => {
  const busy = new Problem(409, { code: 'control_busy', message: 'busy' });

  it('tries again while the control plane is busy', async () => {
    let left = 2;
    const got = await retryBusy(
      () => (left-- > 0 ? Promise.reject(busy) : Promise.resolve('done')),
      [1, 1, 1],
    );
    expect(got).toBe('done');
  });
  it('gives up in the end', async () => {
    await expect(retryBusy(() => Promise.reject(busy), [1, 1])).rejects.toBe(busy);
  });
  it('does not try again what would fail again', async () => {
    let tries = 0;
    const no = new Problem(400, { code: 'relay_rejected', message: 'no' });
    const attempt = () => (tries++, Promise.reject(no));
    await expect(retryBusy(attempt, [1, 1])).rejects.toBe(no);
    expect(tries).toBe(1);
  });
});
