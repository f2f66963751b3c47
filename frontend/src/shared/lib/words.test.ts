import { afterEach, describe, expect, it, vi } from 'vitest';
import { fromLocal, lines, localTime, readBytes, writeBytes } from './words';

describe('lines', () => {
  it('takes lines and commas', () =>
    expect(lines(' a\n\nb, c ;d\n')).toEqual(['a', 'b', 'c', 'd']));
});

describe('bytes', () => {
  it.each([
    ['0', 0],
    ['1500', 1500],
    ['10 MiB', 10 * 1024 ** 2],
    ['1.5GB', 1.5e9],
    ['2k', 2000],
    ['x', undefined],
    ['1 parsec', undefined],
    ['-1', undefined],
    ['', undefined],
  ])('reads %s', (text, want) => expect(readBytes(text)).toBe(want));
  it.each([1, 999, 1000, 1024, 1_250_000, 1e12, 1024 ** 3, 131072])('keeps %d', (n) =>
    expect(readBytes(writeBytes(n))).toBe(n),
  );
});

describe('times', () => {
  afterEach(() => vi.unstubAllEnvs());
  // A year is typed digit by digit, and clocks of old were not whole minutes off.
  it.each(['0002-01-01T10:30', '0020-01-01T10:30', '0202-01-01T10:30', '2026-01-01T10:30'])(
    'stay what was typed: %s',
    (typed) => {
      vi.stubEnv('TZ', 'Europe/Berlin');
      expect(localTime(fromLocal(typed))).toBe(typed);
    },
  );
  it('go to a form and back', () =>
    expect(fromLocal(localTime('2027-01-01T10:30:00Z'))).toBe('2027-01-01T10:30:00Z'));
  it('are nothing without a time', () => {
    expect(localTime(undefined)).toBe('');
    expect(fromLocal('')).toBeUndefined();
    expect(fromLocal('soon')).toBeUndefined();
  });
});
