/**
 * What a person who looks at it takes for something else, or does not see at
 * all: control and format characters (among them those that turn the direction
 * of text), and what is drawn as nothing.
 */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Line breaks, tabs, and what chooses the look of the emoji before it. */
const harmless = (n: number) => n === 9 || n === 10 || n === 13 || (n >= 0xfe00 && n <= 0xfe0f);

/** Returns text of strangers as what it is: \u202e where that stands. */
export function visible(text: string): string {
  return text.replace(hidden, (c) => {
    const n = c.codePointAt(0) ?? 0;
    if (harmless(n)) return c;
    return n > 0xffff
      ? `\\U${n.toString(16).padStart(8, '0')}`
      : `\\u${n.toString(16).padStart(4, '0')}`;
  });
}

// What is written from right to left: it takes figures and marks beside it along.
const rightToLeft =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const isolates = /(\u2068[^\u2066-\u2069]*\u2069)/;

/**
 * Returns text of strangers for the middle of a sentence: as what it is, and turning
 * nothing that stands beside it. What was isolated so before stays as it is.
 */
export function isolated(text: string): string {
  let turns = false;
  const parts = text.split(isolates).map((part, i) => {
    if (i % 2 === 1 && rightToLeft.test(part)) return `\u2068${visible(part.slice(1, -1))}\u2069`;
    turns ||= rightToLeft.test(part);
    return visible(part);
  });
  return turns ? `\u2068${parts.join('')}\u2069` : parts.join('');
}
