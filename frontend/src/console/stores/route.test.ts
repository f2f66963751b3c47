import { describe, expect, it } from 'vitest';
import { href, parseRoute } from './route.svelte';

describe('routes', () => {
  it.each([
    ['', 'overview', ''],
    ['#/nothing', 'overview', ''],
    ['#/policies/shop.relay.example', 'policies', 'shop.relay.example'],
    ['#/clients/%zz', 'clients', ''],
    ['#/clients/a%2Fb', 'clients', 'a/b'],
  ])('%s', (hash, page, id) => expect(parseRoute(hash)).toMatchObject({ page, id }));
  it('have a query', () => {
    const to = href('access', '', { host: 'a b' });
    expect(to).toBe('#/access?host=a+b');
    expect(parseRoute(to).query.get('host')).toBe('a b');
  });
});
