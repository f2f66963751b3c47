import { describe, expect, it } from 'vitest';
import { t } from './index';
import { en } from './en';
import { zh } from './zh';
import { prefs } from '../../shared/stores/prefs.svelte';

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

describe('language', () => {
  it('follows the choice', () => {
    prefs.lang = 'zh-CN';
    expect(t('save')).toBe('保存');
    prefs.lang = 'en';
    expect(t('save')).toBe('Save');
  });
});
