/** For tests: what Go code says to people, read from its source. */

/** A call or literal of Go that makes a sentence of one of its parts. */
export interface Maker {
  /** What stands before the parts, up to and with its parenthesis or brace. */
  begins: string;
  /** Which part is the sentence, from 0. */
  part: number;
  /** What is said before it, with X where something varies. */
  before?: string;
}

/** Returns where the part of an expression list that begins at i ends. */
function end(code: string, i: number): number {
  let depth = 0;
  for (; i < code.length; i++) {
    const c = code[i] ?? '';
    if (c === '"') {
      for (i++; i < code.length && code[i] !== '"'; i++) if (code[i] === '\\') i++;
    } else if (c === '`') i = code.indexOf('`', i + 1);
    else if ('([{'.includes(c)) depth++;
    else if (')]}'.includes(c)) {
      if (depth-- === 0) return i;
    } else if (
      (c === ',' || c === '\n') &&
      depth === 0 &&
      (c === ',' || /[\w)"\]]\s*$/.test(code.slice(0, i)))
    )
      return i;
  }
  return i;
}

/** Returns what an expression says, with X where something varies; empty if it says nothing itself. */
export function spoken(expression: string): string {
  let rest = expression.trim();
  const format = /^fmt\.(?:Sprintf|Errorf)\(/.exec(rest);
  if (format) {
    rest = rest.slice(format[0].length);
    rest = rest.slice(0, end(rest, 0));
  }
  const text = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"|[\w.]+(?:\((?:[^()"]|"[^"]*")*\)|\.\w+)*/g)]
    .map(([, said]) => said ?? 'X')
    .join('')
    .replace(/\\"/g, '"')
    .replace(/%[.\d]*[a-z]/g, 'X');
  return rest.includes('"') && /[a-z]{2}/.test(text) ? text : '';
}

/** Returns all that the makers of code say. */
export function sentencesOf(code: string, makers: readonly Maker[]): string[] {
  const found: string[] = [];
  const clean = code.replace(/^\s*\/\/.*$/gm, '');
  for (const { begins, part, before = '' } of makers)
    for (let at = clean.indexOf(begins); at >= 0; at = clean.indexOf(begins, at + 1)) {
      if (/\w$/.test(clean.slice(0, at)) && /^\w/.test(begins)) continue; // of a longer name
      let i = at + begins.length;
      for (let n = 0; n < part; n++) i = end(clean, i) + 1;
      const said = spoken(clean.slice(i, end(clean, i)));
      // A message that is no more than its only value is made elsewhere.
      if (/[a-z]/.test(said)) found.push(before + said);
    }
  return [...new Set(found)];
}
