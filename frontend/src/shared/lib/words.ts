/** Lines, lists and numbers as forms have them. */

/** Returns what stands on lines of its own or between commas, Chinese ones too, without what is empty. */
export function lines(text: string): string[] {
  return text
    .split(/[\n,;，；、]+/)
    .map((line) => line.trim())
    .filter(Boolean);
}

/** First words that are written small wherever they stand. */
const small = /^(adit|dtls|dns|http|https|tcp|tls|udp)$/;

/**
 * Returns what a program said as a sentence begins: Go's errors begin small. A name, key
 * or address at the beginning stays as it is written.
 */
export function sentence(text: string): string {
  const first = /^[a-z]+(?=[ ,]|$)/.exec(text)?.[0];
  return first && !small.test(first) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

const factors: Record<string, number> = {
  '': 1,
  b: 1,
  k: 1e3,
  kb: 1e3,
  kib: 1024,
  m: 1e6,
  mb: 1e6,
  mib: 1024 ** 2,
  g: 1e9,
  gb: 1e9,
  gib: 1024 ** 3,
  t: 1e12,
  tb: 1e12,
  tib: 1024 ** 4,
};

/** Reads a size such as "10 MiB" or "1.5 GB"; undefined if it is none. */
export function readBytes(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  const factor = factors[(found?.[2] ?? '').toLowerCase()];
  if (!found || factor === undefined) return undefined;
  return Math.round(Number(found[1]) * factor);
}

/** Returns a size so that readBytes reads exactly it: "10 MiB", "1500000". */
export function writeBytes(n: number | undefined): string {
  if (!n) return '';
  for (const [name, factor] of [
    ['TiB', 1024 ** 4],
    ['TB', 1e12],
    ['GiB', 1024 ** 3],
    ['GB', 1e9],
    ['MiB', 1024 ** 2],
    ['MB', 1e6],
    ['KiB', 1024],
    ['kB', 1e3],
  ] as const)
    if (n % factor === 0) return `${n / factor} ${name}`;
  return String(n);
}

/** Returns a time as <input type="datetime-local"> has it, in the reader's own zone. */
export function localTime(time: string | undefined): string {
  if (!time) return '';
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '';
  const two = (n: number) => String(n).padStart(2, '0');
  const day = [
    String(at.getFullYear()).padStart(4, '0'),
    two(at.getMonth() + 1),
    two(at.getDate()),
  ];
  return `${day.join('-')}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** Returns the time that such an input stands for, as the API wants it. */
export function fromLocal(text: string): string | undefined {
  const at = new Date(text);
  return text && !Number.isNaN(at.getTime()) ? at.toISOString().replace('.000Z', 'Z') : undefined;
}
