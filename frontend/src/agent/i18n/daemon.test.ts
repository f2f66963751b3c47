import { expect, test } from 'vitest';
import code from '../../../../localapi/diagnose.go?raw';
import { translated } from './daemon';

/** What the daemon's diagnostics say, with X where something varies. */
function sentences(): string[] {
  const found: string[] = [];
  for (const line of code.split('\n')) {
    const said = /(?:Tried|Result|Advice)(?::|,? \w*\.?\w* ?\+?=) (.*)/.exec(line)?.[1];
    if (!said) continue;
    for (const part of line.matchAll(
      /(?:Tried|Result|Advice)(?:: | \+?= )((?:fmt\.Sprintf\()?"[^}]*)/g,
    )) {
      const joined = (part[1] ?? '')
        .replace(/"\s*\+\s*[\w.()]+\s*\+\s*"/g, 'X')
        .replace(/"\s*\+\s*[\w.()]+/g, 'X"');
      const text = /"((?:[^"\\]|\\.)*)"/.exec(joined)?.[1];
      if (text && /[a-z]{2}/.test(text)) found.push(text.replace(/%[.\d]*[a-z](:\/\/%s)?/g, 'X'));
    }
  }
  return found;
}

test('the test finds the sentences of the diagnostics', () => {
  expect(sentences().length).toBeGreaterThan(25);
  expect(sentences()).toContain('the auth token');
});

test.each(sentences())('%s has a translation', (sentence) => {
  // What is added to a result begins with a comma.
  const whole = sentence.startsWith(', ') ? `X${sentence}` : sentence;
  expect(translated(whole, 'zh-CN')).toMatch(/[\u4e00-\u9fff]/);
});

test('what varies is kept, and English stays', () => {
  expect(translated('TCP to relay.example.com:4433', 'zh-CN')).toBe(
    '到 relay.example.com:4433 的 TCP',
  );
  expect(translated('TCP to relay.example.com:4433', 'en')).toBe('TCP to relay.example.com:4433');
  expect(translated('something new', 'zh-CN')).toBe('something new');
});
