/** Reads of X.509 certificates (RFC 5280) what people know them by. */

export interface Certificate {
  /** The common name and the organisation; empty: it has neither. */
  subject: string;
  until: Date;
}

interface Node {
  tag: number;
  /** Of its contents in the bytes. */
  from: number;
  to: number;
}

/** Reads the node of DER that begins at a place, and that ends before another. */
function read(der: Uint8Array, at: number, end: number): Node {
  const byte = (i: number) => {
    const b = i < end ? der[i] : undefined;
    if (b === undefined) throw new RangeError('cut short');
    return b;
  };
  const tag = byte(at);
  let length = byte(at + 1);
  let from = at + 2;
  if (length >= 0x80) {
    const bytes = length - 0x80;
    if (bytes < 1 || bytes > 3) throw new RangeError('no length');
    length = 0;
    for (let i = 0; i < bytes; i++) length = length * 256 + byte(from++);
  }
  if (from + length > end) throw new RangeError('cut short');
  return { tag, from, to: from + length };
}

function within(der: Uint8Array, { from, to }: Node): Node[] {
  const all: Node[] = [];
  for (let at = from; at < to; at = all.at(-1)!.to) all.push(read(der, at, to));
  return all;
}

const ascii = (bytes: Uint8Array) => String.fromCharCode(...bytes);

function text(der: Uint8Array, { tag, from, to }: Node): string {
  const encoding = tag === 0x0c ? 'utf-8' : tag === 0x1e ? 'utf-16be' : 'latin1';
  return new TextDecoder(encoding).decode(der.subarray(from, to));
}

/** UTCTime (until 2049), or GeneralizedTime. */
function time(der: Uint8Array, { tag, from, to }: Node): Date {
  const said = ascii(der.subarray(from, to));
  const whole = tag === 0x17 ? `${Number(said.slice(0, 2)) < 50 ? '20' : '19'}${said}` : said;
  const parts = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(whole);
  if (!parts) throw new RangeError('no time');
  const [year, month, day, hour, minute, second] = parts.slice(1).map(Number);
  return new Date(Date.UTC(year!, month! - 1, day, hour, minute, second));
}

const commonName = '\x55\x04\x03';
const organisation = '\x55\x04\x0a';

function subject(der: Uint8Array, name: Node): string {
  const found = new Map<string, string>();
  for (const set of within(der, name))
    for (const pair of within(der, set)) {
      const [kind, value] = within(der, pair);
      if (kind && value) found.set(ascii(der.subarray(kind.from, kind.to)), text(der, value));
    }
  const names = [found.get(commonName), found.get(organisation)].filter((n) => !!n);
  return [...new Set(names)].join(', ');
}

function certificate(der: Uint8Array): Certificate {
  const whole = read(der, 0, der.length);
  const [signed] = within(der, whole);
  if (whole.tag !== 0x30 || signed?.tag !== 0x30) throw new RangeError('no certificate');
  const fields = within(der, signed);
  // The version comes first, unless it is 1. Then come the number, the signature's
  // algorithm, the issuer, the time, and the subject.
  const [, , , validity, name] = fields[0]?.tag === 0xa0 ? fields.slice(1) : fields;
  const until = validity && within(der, validity)[1];
  if (!until || !name) throw new RangeError('cut short');
  return { subject: subject(der, name), until: time(der, until) };
}

/** Returns the certificates of a text with PEM; undefined: one that cannot be read. */
export function certificatesIn(pem: string): (Certificate | undefined)[] {
  const blocks = pem.matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g);
  return [...blocks].map(([, base64]) => {
    try {
      return certificate(Uint8Array.from(atob(base64!), (c) => c.charCodeAt(0)));
    } catch {
      return undefined;
    }
  });
}
