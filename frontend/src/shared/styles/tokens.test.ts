import { describe, expect, it } from 'vitest';
import css from './tokens.css?raw';

/** Contrasts of WCAG 2.2: 1.4.3 for text, 1.4.11 for what shows where a control is, or a state. */
const TEXT = 4.5;
const SHAPE = 3;

/** Returns the colours that a rule of the style sheet sets, by name. */
function colours(selector: string): Record<string, string> {
  const rule = css.slice(css.indexOf(`${selector} {`));
  const body = rule.slice(0, rule.indexOf('}'));
  return Object.fromEntries(
    [...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name, value]),
  ) as Record<string, string>;
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const grounds = ['bg', 'surface', 'raised', 'sunken'];
const pairs: [string, string[], number][] = [
  ...['text', 'text-2', 'text-3'].map((name): [string, string[], number] => [
    name,
    [...grounds, 'hover'],
    TEXT,
  ]),
  ['accent-text', [...grounds, 'accent-soft'], TEXT],
  ['on-accent', ['accent', 'accent-hover'], TEXT],
  ...['ok', 'warn', 'bad', 'info'].map((name): [string, string[], number] => [
    name,
    [...grounds, `${name}-soft`],
    TEXT,
  ]),
  ['edge', grounds, SHAPE],
  ['idle-dot', grounds, SHAPE],
  ...['ok', 'warn', 'bad', 'info'].map((name): [string, string[], number] => [
    `${name}-dot`,
    [...grounds, `${name}-soft`],
    SHAPE,
  ]),
  ...['accent', 'series-in', 'series-out'].map((name): [string, string[], number] => [
    name,
    ['surface'],
    SHAPE,
  ]),
];

describe.each([
  ['light', ':root'],
  ['dark', ":root[data-theme='dark']"],
])('the %s theme', (_, selector) => {
  const of = colours(selector);
  it.each(pairs)('shows %s on %j', (name, on, least) => {
    for (const ground of on) {
      const [front, back] = [of[name], of[ground]];
      if (!front || !back) throw new Error(`${name} or ${ground} is no colour`);
      expect(contrast(front, back), `${name} on ${ground}`).toBeGreaterThanOrEqual(least);
    }
  });
});
