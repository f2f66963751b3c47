/** Numbers and times as people read them; the language is a BCP 47 tag. */

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Returns a size with three digits at most: "0 B", "1.5 KiB", "312 MiB". */
export function bytes(n: number): string {
  if (!Number.isFinite(n) || n < 0) return '–';
  let unit = 0;
  // 1023.95 would round to "1024", so the step comes a little earlier.
  while (n >= 999.5 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  const digits = unit === 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return `${trimZeros(n.toFixed(digits))} ${units[unit]}`;
}

/** Returns a rate: "1.5 MiB/s". */
export function rate(n: number): string {
  return `${bytes(n)}/s`;
}

function trimZeros(s: string): string {
  return s.includes('.') ? s.replace(/\.?0+$/, '') : s;
}

/** Returns a duration in milliseconds: "0.4 ms", "23 ms", "1.2 s". */
export function millis(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 10) return `${trimZeros(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${trimZeros((ms / 1000).toFixed(1))} s`;
  return `${trimZeros((ms / 60_000).toFixed(1))} min`;
}

const spanUnits = { en: ['d', 'h', 'm', 's'], zh: [' 天', ' 小时', ' 分钟', ' 秒'] };

/** Returns a span in its two largest units: "3d 4h", "12m 5s". */
export function span(ms: number, lang = 'en'): string {
  const names = lang.startsWith('zh') ? spanUnits.zh : spanUnits.en;
  const s = Math.max(0, Math.floor(ms / 1000));
  const parts = [
    Math.floor(s / 86_400),
    Math.floor(s / 3600) % 24,
    Math.floor(s / 60) % 60,
    s % 60,
  ].map((n, i) => ({ n, text: `${n}${names[i]}` }));
  const first = parts.findIndex(({ n }) => n > 0);
  if (first < 0) return `0${names[3]}`;
  return parts
    .slice(first, first + 2)
    .filter(({ n }, i) => n > 0 || i === 0)
    .map(({ text }) => text)
    .join(' ');
}

const clocks = new Map<string, Intl.DateTimeFormat>();

function formatter(lang: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = lang + JSON.stringify(options);
  let found = clocks.get(key);
  if (!found) clocks.set(key, (found = new Intl.DateTimeFormat(lang, options)));
  return found;
}

/** Returns the time of day with seconds, in the reader's own zone. */
export function clock(time: string, lang: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  return formatter(lang, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).format(at);
}

/** Reports whether two moments are of one day, in the reader's own zone. */
function sameDay(time: string, now: number): boolean {
  return new Date(time).toDateString() === new Date(now).toDateString();
}

/**
 * Returns the time of day, and of another day than now's the date before it, with the
 * year if that is another: "12:24:22", "Nov 24, 12:24:22".
 */
export function when(time: string, lang: string, now: number): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  if (sameDay(time, now)) return clock(time, lang);
  return formatter(lang, {
    year: at.getFullYear() === new Date(now).getFullYear() ? undefined : 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).format(at);
}

/** Returns the date, in the reader's own zone. */
export function date(time: string, lang: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  return formatter(lang, { dateStyle: 'medium' }).format(at);
}

/** Returns date and time, in the reader's own zone. */
export function dateTime(time: string, lang: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return '–';
  return formatter(lang, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' }).format(at);
}

/** Returns how far a moment's zone is from UTC: "UTC+8". */
function offset(at: Date): string {
  const parts = formatter('en', { timeZoneName: 'shortOffset' }).formatToParts(at);
  return (parts.find((p) => p.type === 'timeZoneName')?.value ?? '').replace('GMT', 'UTC');
}

/** Returns date and time with their distance from UTC, where the zone is not said beside them. */
export function moment(time: string, lang: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? '–' : `${dateTime(time, lang)} ${offset(at)}`;
}

/** Returns the zone that times are shown in: "Asia/Shanghai (UTC+8)". */
export function zone(now = new Date()): string {
  const { timeZone } = formatter('en', {}).resolvedOptions();
  const from = offset(now);
  if (timeZone === 'UTC') return timeZone;
  return timeZone === from ? from : `${timeZone} (${from})`;
}

/** Returns words one after the other, as the language parts them: "A, B" or "A、B". */
export function list(words: readonly string[], lang: string): string {
  return words.join(lang.startsWith('zh') ? '、' : ', ');
}

/** Returns sentences one after the other, as the language parts them. */
export function sentences(lang: string, ...texts: readonly string[]): string {
  return texts.filter(Boolean).join(lang.startsWith('zh') ? '' : ' ');
}

/** Returns a whole number with the language's grouping. */
export function count(n: number, lang: string): string {
  return n.toLocaleString(lang);
}
