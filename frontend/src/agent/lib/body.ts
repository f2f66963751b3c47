/** Ways to show a body that was recorded. */

/** Returns JSON with indents, or undefined if the text is not JSON. */
export function prettyJson(text: string): string | undefined {
  const start = text.trimStart()[0];
  if (start !== '{' && start !== '[') return undefined;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return undefined;
  }
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

/** Returns a hex dump, 16 bytes a line, of at most limit bytes. */
export function hexDump(data: Uint8Array, limit = 4096): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(data.length, limit); at += 16) {
    const row = [...data.subarray(at, Math.min(at + 16, limit))];
    const hex = row.map((b) => b.toString(16).padStart(2, '0'));
    const text = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : '.'));
    const left = hex.slice(0, 8).join(' ').padEnd(23);
    const right = hex.slice(8).join(' ').padEnd(23);
    lines.push(`${at.toString(16).padStart(8, '0')}  ${left}  ${right}  ${text.join('')}`);
  }
  return lines.join('\n');
}
