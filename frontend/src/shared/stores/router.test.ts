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
