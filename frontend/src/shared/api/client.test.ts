import { afterEach, describe, expect, it, vi } from 'vitest';
import { call, loopbackDenied, Problem, setBearer, Unreachable, whenUnsure } from './client';

afterEach(() => {
  vi.unstubAllGlobals();
  setBearer('');
});

function permissions(states: Record<string, PermissionState>): void {
  vi.stubGlobal('navigator', {
    permissions: {
      query: ({ name }: { name: string }) =>
        name in states
          ? Promise.resolve({ state: states[name] })
          : Promise.reject(new TypeError('not a valid enum value')),
    },
  });
}

describe('loopbackDenied', () => {
  it.each(['127.0.0.1', '127.8.0.1', 'localhost', 'adit.localhost', '[::1]'])(
    'a page of %s needs no leave',
    async (host) => {
      permissions({ 'loopback-network': 'denied' });
      expect(await loopbackDenied(host)).toBe(false);
    },
  );

  it.each<[string, Record<string, PermissionState>, boolean]>([
    ['denied', { 'loopback-network': 'denied' }, true],
    ['denied under the older name', { 'local-network-access': 'denied' }, true],
    ['still to be asked', { 'loopback-network': 'prompt' }, false],
    ['unknown to the browser', {}, false],
  ])('%s', async (_, states, want) => {
    permissions(states);
    expect(await loopbackDenied('nas.example')).toBe(want);
  });

  it('is not fooled by a name that looks like loopback', async () => {
    permissions({ 'loopback-network': 'denied' });
    expect(await loopbackDenied('127.0.0.1.example.com')).toBe(true);
    expect(await loopbackDenied('notlocalhost')).toBe(true);
  });
});

describe('call', () => {
  function daemon(answer: () => Promise<Response>) {
    const asked: RequestInit[] = [];
    vi.stubGlobal('document', { baseURI: 'http://127.0.0.1:37271/' });
    vi.stubGlobal('location', { hostname: '127.0.0.1' });
    vi.stubGlobal('fetch', (_: string, init: RequestInit) => {
      asked.push(init);
      return answer();
    });
    return asked;
  }

  it('waits for an answer as long as it was told to', async () => {
    vi.useFakeTimers();
    const asked = daemon(
      () =>
        new Promise((_, fail) => {
          const signal = asked.at(-1)?.signal;
          signal?.addEventListener('abort', () => fail(new DOMException('aborted', 'AbortError')));
        }),
    );
    const outcome = call('GET', 'status', { patience: 5000 }).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(5000);
    vi.useRealTimers();
    expect(await outcome).toBeInstanceOf(Unreachable);
  });

  const broken = () => {
    const cut = new ReadableStream({ start: (c) => c.error(new TypeError('network error')) });
    return Promise.resolve(new Response(cut));
  };
  it.each<[string, string, object, () => Promise<Response>, boolean]>([
    ['a question', 'GET', {}, () => Promise.reject(new TypeError('failed')), false],
    ['a change', 'POST', {}, () => Promise.reject(new TypeError('failed')), true],
    ['a change, in the middle of its answer', 'PATCH', {}, broken, true],
    ['a question that is long', 'POST', { harmless: true }, broken, false],
  ])('says whether %s may have changed something when its answer is lost', async (...is) => {
    const [, method, options, answer, want] = is;
    daemon(answer);
    const told = vi.fn();
    const end = whenUnsure(told);
    const error: unknown = await call(method, 'tunnels', options).catch((e: unknown) => e);
    expect([error instanceof Unreachable, (error as Unreachable).unsure]).toEqual([true, want]);
    expect(told).toHaveBeenCalledTimes(want ? 1 : 0);
    end();
    await call(method, 'tunnels', options).catch(() => undefined);
    expect(told).toHaveBeenCalledTimes(want ? 1 : 0);
  });

  it('is not unsure of a change that the browser forbids', async () => {
    daemon(() => Promise.reject(new TypeError('failed')));
    vi.stubGlobal('location', { hostname: 'nas.example' });
    permissions({ 'local-network': 'denied' });
    const error: unknown = await call('DELETE', 'tunnels/1').catch((e: unknown) => e);
    expect(error).toMatchObject({ denied: true, unsure: false });
  });

  it('opens the envelope', async () => {
    daemon(() => Promise.resolve(Response.json({ data: { a: 1 } })));
    expect(await call('GET', 'status')).toEqual({ a: 1 });
  });

  it('says what was refused, and where', async () => {
    daemon(() =>
      Promise.resolve(
        Response.json(
          { error: { code: 'invalid_parameter', message: 'no', field: 'local_port' } },
          { status: 400 },
        ),
      ),
    );
    const error: unknown = await call('POST', 'tunnels', { body: {} }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(Problem);
    expect(error).toMatchObject({ status: 400, code: 'invalid_parameter', field: 'local_port' });
  });

  it('survives an answer that is not the daemon’s', async () => {
    daemon(() => Promise.resolve(new Response('<h1>Bad gateway</h1>', { status: 502 })));
    await expect(call('GET', 'status')).rejects.toMatchObject({ status: 502, code: 'internal' });
  });

  it('tells no answer from a refusal', async () => {
    daemon(() => Promise.reject(new TypeError('Failed to fetch')));
    await expect(call('GET', 'status')).rejects.toBeInstanceOf(Unreachable);
  });

  it('sends the Bearer token only once there is one', async () => {
    const asked = daemon(() => Promise.resolve(Response.json({ data: null })));
    await call('GET', 'status');
    setBearer('secret');
    await call('GET', 'status');
    expect(asked.map((o) => (o.headers as Record<string, string>).Authorization)).toEqual([
      undefined,
      'Bearer secret',
    ]);
  });
});

describe('Problem', () => {
  it.each([
    ['deny[0]: "999" is not an address', 'deny[0]', '"999" is not an address'],
    ['deny[0]: "999" is not an address', 'deny', 'deny[0]: "999" is not an address'],
    ['the name is taken', 'domain', 'the name is taken'],
    [': odd', undefined, ': odd'],
  ])('%s beside %s', (message, field, want) => {
    const body = { code: 'invalid_parameter', message, ...(field ? { field } : {}) };
    expect(new Problem(400, body).beside).toBe(want);
  });
});
