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
