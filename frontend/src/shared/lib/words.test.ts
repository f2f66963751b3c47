import { afterEach, describe, expect, it, vi } from 'vitest';
import { fromLocal, lines, localTime, readBytes, sentence, writeBytes } from './words';

describe('lines', () => {
  it('takes lines and commas', () =>
    expect(lines(' a\n\nb, c ;d\n')).toEqual(['a', 'b', 'c', 'd']));
  it('takes what a Chinese keyboard writes between them', () =>
    expect(lines('CN，US；DE、FR')).toEqual(['CN', 'US', 'DE', 'FR']));
});

describe('sentence', () => {
  it.each([
    ['there is no request with this id', 'There is no request with this id'],
    ['reached, but late', 'Reached, but late'],
    ['expired', 'Expired'],
    // What is called so is written so.
    ['adit is too old', 'adit is too old'],
    ['https tunnels only', 'https tunnels only'],
    ['local_port must be 1 to 65535', 'local_port must be 1 to 65535'],
    ['nas.local: no such host', 'nas.local: no such host'],
    ['name: must be short', 'name: must be short'],
    ['tunnels[2] is wrong', 'tunnels[2] is wrong'],
    ['"shop" is taken', '"shop" is taken'],
    ['名称已被占用', '名称已被占用'],
    ['', ''],
  ])('%s', (text, want) => expect(sentence(text)).toBe(want));
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
