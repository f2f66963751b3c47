/** A point of a line, in the coordinates of a drawing. */
export interface Scale {
  width: number;
  height: number;
  /** How many steps the width stands for. */
  steps: number;
  top: number;
}

/** Returns the path of a line whose last value stands at the right edge. */
export function linePath(values: readonly number[], s: Scale): string {
  return points(values, s)
    .map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${x} ${y}`)
    .join('');
}

/** Returns the same, closed along the bottom. */
export function areaPath(values: readonly number[], s: Scale): string {
  const line = points(values, s);
  const first = line[0];
  const last = line.at(-1);
  if (!first || !last) return '';
  return `${linePath(values, s)}L${last[0]} ${s.height}L${first[0]} ${s.height}Z`;
}

function points(values: readonly number[], s: Scale): [number, number][] {
  const step = s.width / Math.max(1, s.steps - 1);
  return values.map((value, i) => [
    round(s.width - (values.length - 1 - i) * step),
    round(s.height - (Math.min(value, s.top) / s.top) * s.height),
  ]);
}

const round = (n: number) => Math.round(n * 10) / 10;

/** Returns a round number at or above the highest value: 1, 2 or 5 of a power of two. */
export function niceTop(highest: number): number {
  let unit = 1024;
  while (unit * 512 < highest) unit *= 1024;
  for (const factor of [1, 2, 5, 10, 20, 50, 100, 200, 500])
    if (factor * unit >= highest) return factor * unit;
  return unit * 1024;
}

/** Returns the same for counts: 1, 2 or 5 of a power of ten. */
export function niceCount(highest: number): number {
  let unit = 1;
  while (unit * 10 <= highest) unit *= 10;
  for (const factor of [1, 2, 5]) if (factor * unit >= highest) return factor * unit;
  return unit * 10;
}
