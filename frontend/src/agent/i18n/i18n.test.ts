import { describe, expect, it } from 'vitest';
import { message } from '../../shared/i18n';
import { t } from './index';
import { en } from './en';
import { zh } from './zh';
import { langFor, prefs } from '../../shared/stores/prefs.svelte';

const holes = (text: string) => [...new Set(text.match(/\{\w+\}/g))].sort();

describe('messages', () => {
  it.each(Object.keys(en) as (keyof typeof en)[])('%s has the same holes in both', (key) => {
    expect(holes(zh[key])).toEqual(holes(en[key].split('|').pop() ?? ''));
    expect(zh[key].trim()).not.toBe('');
  });

  it('has the same number of forms', () => {
    for (const key of Object.keys(en) as (keyof typeof en)[])
      expect(zh[key].split('|'), key).toHaveLength(en[key].split('|').length);
  });

  it('uses the marks of Chinese in Chinese', () => {
    for (const [key, text] of Object.entries(zh))
      expect(text, key).not.toMatch(/\p{Script=Han}[,;?!]|[,;]\p{Script=Han}/u);
  });
});

describe('message', () => {
  it('fills in', () => expect(message('{a} and {b}', { a: 1, b: 'x' })).toBe('1 and x'));
  it('keeps a hole that nothing fills', () => expect(message('{a}')).toBe('{a}'));
  it('does not read a value as a form', () => expect(message('{a}', { a: 'x|y' })).toBe('x|y'));
  it('is not turned around by what it is filled in with', () => {
    expect(message('Deleted {a}.', { a: 'x\u202Ey' })).toBe('Deleted x\\u202ey.');
    expect(message('{a} 1', { a: '\u05d0' })).toBe('\u2068\u05d0\u2069 1');
  });
  it.each([
    [1, 'one'],
    [0, '0 things'],
    [2, '2 things'],
  ])('counts %d', (n, want) => expect(message('one|{n} things', { n })).toBe(want));
});

describe('language', () => {
  it.each([
    [['zh-TW', 'en'], 'zh-CN'],
    [['de-DE', 'en-GB'], 'en'],
    [['fr'], 'en'],
    [[], 'en'],
  ])('%j is %s', (wanted, want) => expect(langFor(wanted)).toBe(want));
  it('follows the choice', () => {
    prefs.lang = 'zh-CN';
    expect(t('save')).toBe('保存');
    prefs.lang = 'en';
    expect(t('save')).toBe('Save');
  });
});
