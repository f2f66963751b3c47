import type { Header } from '../api/types';

export type Parsed = { ok: true; items: Header[] } | { ok: false; line: number };

/** Returns headers as lines of text; hidden values are left out. */
export function headersText(headers: readonly Header[]): string {
  return headers
    .filter((h) => !h.redacted)
    .map((h) => `${h.name}: ${h.value}`)
    .join('\n');
}

/** Reads lines of "Name: value"; says which line is not one (RFC 9110, section 5). */
export function parseHeaders(text: string): Parsed {
  const items: Header[] = [];
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue;
    const m = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line);
    if (!m?.[1]) return { ok: false, line: i + 1 };
    items.push({ name: m[1], value: m[2] ?? '' });
  }
  return { ok: true, items };
}
