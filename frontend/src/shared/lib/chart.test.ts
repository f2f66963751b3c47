import { describe, expect, it } from 'vitest';
import { areaPath, linePath, niceTop } from './chart';

const scale = { width: 100, height: 50, steps: 11, top: 10 };

describe('chart', () => {
  it('puts the newest at the right edge', () =>
    expect(linePath([0, 10], scale)).toBe('M90 50L100 0'));
  it('closes an area along the bottom', () =>
    expect(areaPath([5, 5], scale)).toBe('M90 25L100 25L100 50L90 50Z'));
  it('draws nothing from nothing', () => {
    expect(linePath([], scale)).toBe('');
    expect(areaPath([], scale)).toBe('');
  });
  it('never draws above the top', () => expect(linePath([99], scale)).toBe('M100 0'));
});

describe('niceTop', () => {
  it.each([
    [0, 1024],
    [1025, 2048],
    [3000, 5 * 1024],
    [600 * 1024, 1024 * 1024],
  ])('%d fits under %d', (highest, want) => expect(niceTop(highest)).toBe(want));
  it('is never below the highest', () => {
    for (let n = 1; n < 2 ** 42; n = Math.ceil(n * 1.7))
      expect(niceTop(n)).toBeGreaterThanOrEqual(n);
  });
});
