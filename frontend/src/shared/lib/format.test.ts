import { describe, expect, it } from 'vitest';
import {
  bytes,
  clock,
  count,
  dateTime,
  list,
  millis,
  moment,
  rate,
  sentences,
  span,
  when,
  zone,
} from './format';

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

  it.each([
    [0, '0 秒'],
    [60_000, '1 分钟'],
    [725_000, '12 分钟 5 秒'],
    [273_600_000, '3 天 4 小时'],
  ])('%d is %s in Chinese', (n, want) => expect(span(n, 'zh-CN')).toBe(want));
});

describe('list', () => {
  it('has the comma of the language', () => {
    expect(list(['a', 'b', 'c'], 'en')).toBe('a, b, c');
    expect(list(['甲', '乙'], 'zh-CN')).toBe('甲、乙');
  });
});

describe('sentences', () => {
  it('has a space between them where the language has one', () => {
    expect(sentences('en', 'One.', '', 'Two.')).toBe('One. Two.');
    expect(sentences('zh-CN', '一。', '二。')).toBe('一。二。');
  });
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
  it('says the date of another day, and the year of another year', () => {
    const now = new Date(2026, 10, 25, 0, 5).getTime();
    const at = (...parts: [number, number, number, number, number, number]) =>
      new Date(...parts).toISOString();
    expect(when(at(2026, 10, 25, 0, 4, 9), 'en', now)).toBe('00:04:09');
    expect(when(at(2026, 10, 24, 23, 59, 9), 'en', now)).toBe('Nov 24, 23:59:09');
    expect(when(at(2026, 10, 24, 23, 59, 9), 'zh-CN', now)).toBe('11月24日 23:59:09');
    expect(when(at(2025, 10, 25, 0, 4, 9), 'en', now)).toBe('Nov 25, 2025, 00:04:09');
    expect(when('soon', 'en', now)).toBe('–');
  });
  it('says how far from UTC a moment is, in summer and in winter', () => {
    for (const [month, hours] of [
      [0, new Date(2026, 0, 1).getTimezoneOffset() / -60],
      [6, new Date(2026, 6, 1).getTimezoneOffset() / -60],
    ] as const) {
      const sign =
        hours === 0 ? 'UTC' : `UTC${hours < 0 ? '-' : '+'}${Math.floor(Math.abs(hours))}`;
      expect(moment(new Date(2026, month, 1, 12).toISOString(), 'en')).toContain(
        `12:00:00 ${sign}`,
      );
    }
    expect(moment('soon', 'en')).toBe('–');
  });
  it('names the zone of the reader', () => {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    expect(zone()).toContain(timeZone);
    expect(zone()).toContain('UTC');
  });
  it('does not name UTC twice', () => expect(zone()).not.toMatch(/^UTC .*UTC/));
  it('groups digits', () => expect(count(12345, 'en')).toBe('12,345'));
});
