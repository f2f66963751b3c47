import { expect, it } from 'vitest';
import { certificateTone } from './certificates';

const now = Date.parse('2026-05-04T00:00:00Z');

it.each([
  ['2026-05-03T23:59:59Z', 'bad'],
  ['2026-05-04T00:00:01Z', 'warn'],
  ['2026-05-10T23:59:59Z', 'warn'],
  ['2026-05-11T00:00:00Z', 'ok'],
  [undefined, 'idle'],
])('a certificate until %s is %s', (not_after, want) =>
  expect(certificateTone({ source: 'acme', trying: false, not_after }, now)).toBe(want),
);
