import { describe, expect, it } from 'vitest';
import { bytes, clock, count, dateTime, millis, rate, span } from './format';

describe('bytes', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '0.98 KiB'],
    [1536, '1.5 KiB'],
    [1024 * 1024, '1 MiB'],
    [312.4 * 1024 * 1024, '312 MiB'],
    [10 * 1024 ** 3, '10 GiB'],
    [-1, '–'],
    [Number.NaN, '–'],
  ])('%d is %s', (n, want) => expect(bytes(n)).toBe(want));

  it('never shows four digits', () => {
    for (let n = 1; n < 2 ** 40; n = Math.ceil(n * 1.037)) {
      expect(bytes(n).split(' ')[0]?.replace('.', '').length).toBeLessThanOrEqual(3);
    }
  });

  it('has a rate', () => expect(rate(2048)).toBe('2 KiB/s'));
});

describe('millis', () => {
  it.each([
    [0.42, '0.4 ms'],
    [9, '9 ms'],
    [23.4, '23 ms'],
    [1234, '1.2 s'],
    [90_000, '1.5 min'],
    [-3, '–'],
  ])('%d is %s', (n, want) => expect(millis(n)).toBe(want));
});

describe('span', () => {
  it.each([
    [0, '0s'],
    [-5, '0s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [725_000, '12m 5s'],
    [3_600_000, '1h'],
    [273_600_000, '3d 4h'],
  ])('%d is %s', (n, want) => expect(span(n)).toBe(want));
});

describe('times', () => {
  it('shows a dash for what is no time', () => {
    expect(clock('', 'en')).toBe('–');
    expect(dateTime('soon', 'zh-CN')).toBe('–');
  });
  it('shows seconds', () => expect(clock('2026-05-04T10:20:30Z', 'en')).toMatch(/^\d\d:20:30$/));
  it('shows midnight as 00', () => {
    const at = new Date(2026, 1, 1, 0, 5, 9).toISOString();
    expect(clock(at, 'en')).toBe('00:05:09');
  });
  it('groups digits', () => expect(count(12345, 'en')).toBe('12,345'));
});
