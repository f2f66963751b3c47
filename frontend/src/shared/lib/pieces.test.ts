import { expect, test } from 'vitest';
import { ipPieces, pieces } from './pieces';

test.each([
  ['', []],
  ['/', ['/']],
  ['shop.relay.example/a/b.js', ['shop.relay.example/', 'a/', 'b.js']],
  ['/find?q=1&page=2', ['/', 'find', '?q=1', '&page=2']],
  ['https://shop.example//x', ['https://', 'shop.example//', 'x']],
  ['/a\u202eb', ['/', 'a\\u202eb']],
])('%s ends its lines where a reader would', (address, want) =>
  expect(pieces(address)).toEqual(want),
);

test('an IP address ends its lines after colons', () => {
  expect(ipPieces('2001:db8::7')).toEqual(['2001:', 'db8::', '7']);
  expect(ipPieces('203.0.113.9')).toEqual(['203.0.113.9']);
});
