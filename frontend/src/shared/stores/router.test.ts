import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readHash, Router, writeHash } from './router.svelte';

const pages = ['overview', 'tunnels', 'access'] as const;

describe('routes', () => {
  it.each([
    ['', 'overview', ''],
    ['#/nowhere', 'overview', ''],
    ['#/nowhere/x?a=b', 'overview', ''],
    ['#/tunnels', 'tunnels', ''],
    ['#/tunnels/shop.relay.example', 'tunnels', 'shop.relay.example'],
    ['#/tunnels/a%2Fb', 'tunnels', 'a/b'],
    ['#/tunnels/%E0%A4%A', 'tunnels', ''],
  ])('%s', (hash, page, id) => expect(readHash(hash, pages)).toEqual({ page, id, query: {} }));
  it('are read as they were written', () => {
    const to = writeHash('access', 'a/b?c', { host: 'a b', path: '/?x=1&y', none: '' });
    expect(to).toBe('#/access/a%2Fb%3Fc?host=a+b&path=%2F%3Fx%3D1%26y');
    expect(readHash(to, pages)).toEqual({
      page: 'access',
      id: 'a/b?c',
      query: { host: 'a b', path: '/?x=1&y' },
    });
  });
});

describe('a router', () => {
  const location = { hash: '' };
  const written: string[] = [];
  const pushed: string[] = [];
  const history = {
    state: null as unknown,
    went: 0,
    back: () => void history.went++,
    replaceState: (state: unknown, _: string, to: string) => {
      history.state = state;
      written.push(to);
    },
    pushState: (state: unknown, _: string, to: string) => {
      history.state = state;
      pushed.push(to);
    },
  };
  beforeEach(() => {
    vi.useFakeTimers();
    written.length = pushed.length = 0;
    history.state = null;
    history.went = 0;
    vi.stubGlobal('location', location);
    vi.stubGlobal('history', history);
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('writes what is typed once, when it rests', () => {
    const router = new Router(pages);
    router.go('tunnels', '', true);
    for (const q of ['s', 'sh', 'shop']) router.ask({ q });
    expect(router.current.query).toEqual({ q: 'shop' });
    expect(written).toEqual(['#/tunnels']);
    vi.runAllTimers();
    expect(written).toEqual(['#/tunnels', '#/tunnels?q=shop']);
  });
  it('is there at once, with a way back', () => {
    const router = new Router(pages);
    router.go('tunnels', 'new');
    expect(router.current).toEqual({ page: 'tunnels', id: 'new', query: {} });
    expect(pushed).toEqual(['#/tunnels/new']);
    expect(written).toEqual([]);
  });
  it('closes what it opened by the way back, so that it leaves no step behind', () => {
    const router = new Router(pages);
    router.go('tunnels', '', true);
    router.go('tunnels', 'new');
    router.close();
    expect(router.current).toEqual({ page: 'tunnels', id: '', query: {} });
    expect(history.went).toBe(1);
    expect(written).toEqual(['#/tunnels']);
  });
  it.each([
    [
      'a link showed',
      (router: Router<'overview' | 'tunnels' | 'access'>) => router.go('tunnels', 't_1', true),
    ],
    [
      'another page opened',
      (router: Router<'overview' | 'tunnels' | 'access'>) => router.go('tunnels', 't_1'),
    ],
    [
      'changed since',
      (router: Router<'overview' | 'tunnels' | 'access'>) => {
        router.go('tunnels', '', true);
        router.go('tunnels', 't_1');
        router.ask({ q: 'shop' });
        vi.runAllTimers();
      },
    ],
  ])('closes in place what %s', (_, open) => {
    const router = new Router(pages);
    open(router);
    router.close();
    expect(router.current).toMatchObject({ page: 'tunnels', id: '' });
    expect(history.went).toBe(0);
    expect(written.at(-1)).toMatch(/^#\/tunnels(\?q=shop)?$/);
  });
  it('writes what is typed before it opens something over it', () => {
    const router = new Router(pages);
    router.go('tunnels', '', true);
    router.ask({ q: 'shop' });
    router.go('tunnels', 't_1');
    expect(written.at(-1)).toBe('#/tunnels?q=shop');
    expect(pushed).toEqual(['#/tunnels/t_1?q=shop']);
  });
  it('keeps what is looked for within a page, and forgets it with the page', () => {
    const router = new Router(pages);
    router.go('tunnels', '', true);
    router.ask({ q: 'shop', state: 'failed' });
    router.ask({ q: '' });
    router.go('tunnels', 't_1', true);
    expect(router.current).toEqual({ page: 'tunnels', id: 't_1', query: { state: 'failed' } });
    router.go('access', '', true);
    expect(router.current.query).toEqual({});
    vi.runAllTimers();
    expect(written.at(-1)).toBe('#/access');
  });
});

/** A browser's history: entries with a state and an address, and a place among them. */
class Entries {
  all: { state: unknown; hash: string }[] = [{ state: null, hash: '' }];
  at = 0;
  #listeners: (() => void)[] = [];
  readonly location = {
    assign: (href: string) => this.follow(href),
  } as Location;
  readonly history = {} as History;

  constructor() {
    Object.defineProperties(this.location, {
      hash: { get: () => this.all[this.at]?.hash },
      href: { get: () => this.all[this.at]?.hash },
    });
    Object.defineProperty(this.history, 'state', { get: () => this.all[this.at]?.state });
    Object.assign(this.history, {
      back: () => this.go(-1),
      go: (n: number) => this.go(n),
      pushState: (state: unknown, _: string, hash: string) => this.#push({ state, hash }),
      replaceState: (state: unknown, _: string, hash: string) =>
        (this.all[this.at] = { state, hash }),
    });
    vi.stubGlobal('location', this.location);
    vi.stubGlobal('history', this.history);
    vi.stubGlobal('addEventListener', (_: string, f: () => void) => this.#listeners.push(f));
  }

  /** A plain link, or an address that is typed. */
  follow(hash: string): void {
    this.#push({ state: null, hash });
    this.#tell();
  }

  go(n: number): void {
    queueMicrotask(() => {
      this.at += n;
      this.#tell();
    });
  }

  #push(entry: { state: unknown; hash: string }): void {
    this.all = [...this.all.slice(0, this.at + 1), entry];
    this.at++;
  }

  #tell(): void {
    for (const f of this.#listeners) f();
  }
}

describe('a router in a browser', () => {
  let entries: Entries;
  let router: Router<'overview' | 'tunnels' | 'access'>;
  const at = () => [router.current.page, router.current.id, entries.all[entries.at]?.hash];
  beforeEach(() => {
    entries = new Entries();
    router = new Router(pages);
    router.start();
  });
  afterEach(() => vi.unstubAllGlobals());
  const settled = () => new Promise((done) => setTimeout(done));

  it('closes by the way back what a link opened over its page', async () => {
    entries.follow('#/tunnels');
    entries.follow('#/tunnels/t_1');
    router.close();
    await settled();
    expect(at()).toEqual(['tunnels', '', '#/tunnels']);
    expect(entries.at).toBe(1);
  });
  it('closes in place what was there before the list', async () => {
    entries.follow('#/tunnels/t_1');
    entries.follow('#/tunnels');
    entries.go(-1);
    await settled();
    router.close();
    await settled();
    expect(at()).toEqual(['tunnels', '', '#/tunnels']);
    expect(entries.at).toBe(1);
  });

  describe('that holds what is not saved', () => {
    let asked: (() => void)[];
    let release: () => void;
    beforeEach(() => {
      router.go('tunnels');
      router.go('access');
      router.go('tunnels', 't_1');
      asked = [];
      release = router.hold((leave) => !!asked.push(leave));
    });
    const stays = ['tunnels', 't_1', '#/tunnels/t_1'];
    it.each([
      ['a button', () => router.go('access'), ['access', '', '#/access']],
      ['a link', () => entries.follow('#/access/a_1'), ['access', 'a_1', '#/access/a_1']],
      ['a step back', () => entries.go(-1), ['access', '', '#/access']],
      ['two steps back', () => entries.go(-2), ['tunnels', '', '#/tunnels']],
      ['closing it', () => router.close(), ['tunnels', '', '#/tunnels']],
    ])('asks before %s leaves it', async (_, go, want) => {
      go();
      await settled();
      expect(at()).toEqual(stays);
      expect(asked).toHaveLength(1);
      asked[0]?.();
      await settled();
      expect(at()).toEqual(want);
      expect(asked).toHaveLength(1);
    });
    it('asks again who stayed', async () => {
      for (let n = 1; n < 4; n++) {
        entries.go(-1);
        await settled();
        expect(at()).toEqual(stays);
        expect(asked).toHaveLength(n);
      }
    });
    it('asks before anything else that leaves it', () => {
      const out = vi.fn();
      router.leave(out);
      expect(out).not.toHaveBeenCalled();
      asked[0]?.();
      expect(out).toHaveBeenCalledOnce();
    });
    it('lets go', async () => {
      release();
      entries.go(-1);
      await settled();
      expect(at()).toEqual(['access', '', '#/access']);
      const out = vi.fn();
      router.leave(out);
      expect(out).toHaveBeenCalledOnce();
      expect(asked).toEqual([]);
    });
  });
});
