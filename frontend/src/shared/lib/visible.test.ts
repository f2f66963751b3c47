import { expect, test } from 'vitest';
import { isolated, visible } from './visible';

test('text of strangers is shown as what it is', () => {
  const shown: Record<string, string> = {
    '/shop?q=1': '/shop?q=1',
    '/café/магазин/חנות/😀❤\uFE0F': '/café/магазин/חנות/😀❤\uFE0F',
    'two\n\tlines': 'two\n\tlines',
    'invoice\u202Efdp.exe': 'invoice\\u202efdp.exe',
    '\u202Aa\u2066b\u2069': '\\u202aa\\u2066b\\u2069',
    'ad\u200Bmin\uFEFF\u00AD': 'ad\\u200bmin\\ufeff\\u00ad',
    '\u{E0041}': '\\U000e0041',
    '\x1B[2J\u009B': '\\u001b[2J\\u009b',
  };
  for (const [text, want] of Object.entries(shown)) expect(visible(text)).toBe(want);
});

test('text of strangers turns nothing in a sentence', () => {
  const shown: Record<string, string> = {
    shop: 'shop',
    '\u05e9\u05dc\u05d5\u05dd': '\u2068\u05e9\u05dc\u05d5\u05dd\u2069',
    'nas \u0645\u0646\u0632\u0644': '\u2068nas \u0645\u0646\u0632\u0644\u2069',
    'invoice\u202Efdp.exe': 'invoice\\u202efdp.exe',
    '\u2068ad\u2069min': '\\u2068ad\\u2069min',
    '\u2069\u05e9': '\u2068\\u2069\u05e9\u2069',
  };
  for (const [text, want] of Object.entries(shown)) {
    expect(isolated(text)).toBe(want);
    expect(isolated(`of ${isolated(text)}`), 'within another sentence').toBe(`of ${want}`);
  }
});
