import { expect, test } from 'vitest';
import { visible } from './visible';

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
