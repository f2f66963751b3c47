import { describe, expect, it } from 'vitest';
import { isPage, isWildcard } from './publicurl';

describe('public URLs', () => {
  it.each([
    ['https://shop.example.com', true, false],
    ['http://shop.localhost:8080', true, false],
    ['https://*.shop.example.com', false, true],
    ['http://*.shop.localhost:8080', false, true],
    ['tls://*.shop.example.com:443', false, true],
    ['tcp://example.com:20000', false, false],
    ['', false, false],
  ])('%s: a page %s, a wildcard %s', (url, page, wildcard) => {
    expect(isPage(url)).toBe(page);
    expect(isWildcard(url)).toBe(wildcard);
  });
});
