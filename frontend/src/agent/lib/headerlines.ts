import type { components } from '../api/schema';
import type { MessageKey } from '../i18n';

type HeaderChanges = components['schemas']['HeaderChanges'];

/** What names and values can be, as the daemon says it; which names it refuses is its own to say. */
const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// eslint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\x00-\x08\x0b-\x1f\x7f]/;

/** A line for each field: "Name: value" sets it, "Name:" removes it. */
export function headersText(fields: HeaderChanges): string {
  return Object.keys(fields)
    .sort()
    .map((key) => `${key}: ${fields[key] ?? ''}`.trim())
    .join('\n');
}

/** Reads such lines; a message instead says what is wrong with one. */
export function parseHeaders(text: string): HeaderChanges | MessageKey {
  const fields: [string, string][] = [];
  const seen = new Set<string>();
  for (const line of text.split(/\r?\n/).filter((l) => l.trim())) {
    const colon = line.indexOf(':');
    const key = line.slice(0, colon).trim();
    if (colon < 0 || !name.test(key) || control.test(line)) return 'form.headers.invalid';
    if (seen.has(key.toLowerCase())) return 'form.headers.twice';
    seen.add(key.toLowerCase());
    fields.push([key, line.slice(colon + 1).trim()]);
  }
  return Object.fromEntries(fields);
}

/** The fields of text that has no mistake. */
export function headersOf(text: string): HeaderChanges {
  const fields = parseHeaders(text);
  return typeof fields === 'string' ? {} : fields;
}
