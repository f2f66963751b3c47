import { describe, expect, it } from 'vitest';
import { isPage, isPlace, isPrivate, isWildcard } from './publicurl';

describe('public URLs', () => {
  it.each([
    ['https://shop.example.com', true, false, true],
    ['http://shop.localhost:8080', true, false, true],
    ['https://*.shop.example.com', false, true, false],
    ['http://*.shop.localhost:8080', false, true, false],
    ['tls://*.shop.example.com:443', false, true, false],
    ['tcp://example.com:20000', false, false, true],
    ['adit://nas/ssh', false, false, false],
    ['', false, false, false],
  ])('%s: a page %s, a wildcard %s, for a phone %s', (url, page, wildcard, place) => {
    expect(isPage(url)).toBe(page);
    expect(isWildcard(url)).toBe(wildcard);
    expect(isPlace(url)).toBe(place);
    expect(isPrivate(url)).toBe(url === 'adit://nas/ssh');
  });
});
