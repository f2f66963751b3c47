/** Ways to show a body that was recorded. */

/** What is nested deeper gains nothing by indents, and would be mostly indents. */
const deepest = 100;

/**
 * Returns JSON with indents, or undefined if the text is not JSON. Nothing else is
 * changed: neither the digits of a number nor the order and number of the keys.
 */
export function prettyJson(text: string): string | undefined {
  const start = text.trimStart()[0];
  if (start !== '{' && start !== '[') return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  const out: string[] = [];
  let depth = 0;
  let before = '';
  const line = () => out.push(`\n${'  '.repeat(depth)}`);
  const opens = (part: string) => part === '{' || part === '[';
  for (const [part] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g)) {
    if (part === '}' || part === ']') {
      depth--;
      if (!opens(before)) line();
    } else if (opens(before) || before === ',') line();
    out.push(part === ':' ? ': ' : part);
    if (opens(part) && ++depth > deepest) return undefined;
    before = part;
  }
  return out.join('');
}

export type TokenKind = 'key' | 'string' | 'number' | 'word' | 'plain';

/** Takes indented JSON apart for colouring; joined, the parts are the text. */
export function jsonTokens(text: string): { kind: TokenKind; text: string }[] {
  const tokens: { kind: TokenKind; text: string }[] = [];
  const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;
  let at = 0;
  for (const m of text.matchAll(pattern)) {
    if (m.index > at) tokens.push({ kind: 'plain', text: text.slice(at, m.index) });
    if (m[1]) {
      tokens.push({ kind: m[2] ? 'key' : 'string', text: m[1] });
      if (m[2]) tokens.push({ kind: 'plain', text: m[2] });
    } else tokens.push({ kind: /^[-\d]/.test(m[0]) ? 'number' : 'word', text: m[0] });
    at = m.index + m[0].length;
  }
  if (at < text.length) tokens.push({ kind: 'plain', text: text.slice(at) });
  return tokens;
}

/** Decodes base64; what is malformed is no bytes. */
export function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** How many bytes the lines of a hex dump may have. */
const lineLengths = [16, 8, 4] as const;

/** Returns the width of a hex dump's lines in characters: address, bytes in groups of eight, text. */
const dumpWidth = (bytes: number) => 4 + Math.ceil(bytes / 8) + 3 * bytes + 2 + bytes;

/** Returns how many bytes a line of a hex dump has where so many characters fit beside each other. */
export function dumpLineLength(characters: number): number {
  return lineLengths.find((bytes) => dumpWidth(bytes) <= characters) ?? 4;
}

/** Returns a hex dump of at most limit bytes, with so many bytes a line. */
export function hexDump(data: Uint8Array, perLine = 16, limit = 4096): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(data.length, limit); at += perLine) {
    const row = [...data.subarray(at, Math.min(at + perLine, limit))];
    const cells = Array.from({ length: perLine }, (_, i) => {
      const cell = row[i]?.toString(16).padStart(2, '0') ?? '  ';
      return i % 8 === 0 ? `  ${cell}` : ` ${cell}`;
    });
    const text = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : '.'));
    lines.push(`${at.toString(16).padStart(4, '0')}${cells.join('')}  ${text.join('')}`);
  }
  return lines.join('\n');
}
