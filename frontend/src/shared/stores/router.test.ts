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
  beforeEach(() => {
    vi.useFakeTimers();
    written.length = pushed.length = 0;
    vi.stubGlobal('location', location);
    vi.stubGlobal('history', {
      replaceState: (_: unknown, __: string, to: string) => written.push(to),
      pushState: (_: unknown, __: string, to: string) => pushed.push(to),
    });
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
