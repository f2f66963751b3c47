import { lines, readBytes, writeBytes } from '../lib/words';
import {
  certificatesFaults,
  certificatesForm,
  certificatesOf,
  type CertificatesDocument,
  type CertificatesFaults,
  type CertificatesForm,
} from './certform';
import {
  signInFaults,
  signInForm,
  signInOf,
  type Mistake,
  type SignInDocument,
  type SignInFaults,
  type SignInForm,
} from './signinform';
import {
  webhookFaults,
  webhookForm,
  webhookOf,
  type WebhookDocument,
  type WebhookFaults,
  type WebhookForm,
} from './webhookform';

/** Who is let in, as both APIs have it. */
export interface PolicyDocument {
  deny?: string[];
  allow?: string[];
  deny_countries?: string[];
  allow_countries?: string[];
  unknown_country?: 'deny' | 'allow';
  hours?: {
    zone?: string;
    open: {
      days?: string[];
      from: string;
      to: string;
    }[];
  };
  connections?: number;
  connections_per_address?: number;
  rate?: number;
  burst?: number;
  bandwidth?: number;
  max_body?: number;
  basic_auth?: { name: string; password?: string }[];
  sign_in?: SignInDocument;
  client_certificates?: CertificatesDocument;
  webhooks?: WebhookDocument[];
  shadow?: boolean;
}

export const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

/** A policy as its form has it: texts, so that half-typed values stay. */
export interface PolicyForm {
  deny: string;
  allow: string;
  denyCountries: string;
  allowCountries: string;
  unknownCountry: 'deny' | 'allow';
  connections: string;
  perAddress: string;
  rate: string;
  burst: string;
  bandwidth: string;
  maxBody: string;
  users: { name: string; password: string; kept: boolean }[];
  signIn: SignInForm;
  certificates: CertificatesForm;
  webhooks: WebhookForm[];
  zone: string;
  open: { days: string[]; from: string; to: string }[];
  shadow: boolean;
  /** What a newer relay knows and this form does not: it is given back as it came. */
  rest: Record<string, unknown>;
}

const known: readonly string[] = [
  'deny',
  'allow',
  'deny_countries',
  'allow_countries',
  'unknown_country',
  'hours',
  'connections',
  'connections_per_address',
  'rate',
  'burst',
  'bandwidth',
  'max_body',
  'basic_auth',
  'sign_in',
  'client_certificates',
  'webhooks',
  'shadow',
] satisfies (keyof PolicyDocument)[];

const number = (n: number | undefined) => (n ? String(n) : '');

/** Returns the form of a document. */
export function formOf(d: PolicyDocument): PolicyForm {
  return {
    deny: (d.deny ?? []).join('\n'),
    allow: (d.allow ?? []).join('\n'),
    denyCountries: (d.deny_countries ?? []).join(', '),
    allowCountries: (d.allow_countries ?? []).join(', '),
    unknownCountry: d.unknown_country ?? 'deny',
    connections: number(d.connections),
    perAddress: number(d.connections_per_address),
    rate: number(d.rate),
    burst: number(d.burst),
    bandwidth: writeBytes(d.bandwidth),
    maxBody: writeBytes(d.max_body),
    users: (d.basic_auth ?? []).map((u) => ({ name: u.name, password: '', kept: true })),
    signIn: signInForm(d.sign_in),
    certificates: certificatesForm(d.client_certificates),
    webhooks: (d.webhooks ?? []).map(webhookForm),
    zone: d.hours?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    open: (d.hours?.open ?? []).map((o) => ({
      days: [...(o.days ?? days)],
      from: o.from,
      to: o.to,
    })),
    shadow: d.shadow ?? false,
    rest: Object.fromEntries(Object.entries(d).filter(([key]) => !known.includes(key))),
  };
}

/** What to say of the fields that are not filled in as they have to be, by their names in the document. */
export type Faults = Partial<Record<keyof PolicyDocument, Mistake>> &
  SignInFaults &
  CertificatesFaults &
  WebhookFaults;

/** Returns what to say of a field; undefined: nothing. */
export const mistakeIn = (faults: Faults, field: string): Mistake | undefined =>
  (faults as Partial<Record<string, Mistake>>)[field];

/** Returns the document of a form, and what in the form is not as it has to be. */
export function documentOf(f: PolicyForm): { document: PolicyDocument; faults: Faults } {
  const d: PolicyDocument = { ...f.rest };
  const sign_in = signInOf(f.signIn);
  const client_certificates = certificatesOf(f.certificates);
  const faults: Faults = {
    ...signInFaults(sign_in),
    ...certificatesFaults(client_certificates),
    ...webhookFaults(f.webhooks),
  };
  if (sign_in) d.sign_in = sign_in;
  if (client_certificates) d.client_certificates = client_certificates;
  if (f.webhooks.length > 0) d.webhooks = f.webhooks.map(webhookOf);
  const list = (key: 'deny' | 'allow' | 'deny_countries' | 'allow_countries', text: string) => {
    const all = lines(text);
    if (all.length > 0) d[key] = key.endsWith('countries') ? all.map((c) => c.toUpperCase()) : all;
  };
  const count = (
    key: 'connections' | 'connections_per_address' | 'rate' | 'burst' | 'bandwidth' | 'max_body',
    text: string,
    read: (text: string) => number | undefined,
  ) => {
    if (!text.trim()) return;
    const n = read(text);
    if (n === undefined) faults[key] = { key: 'form.number' };
    else if (n > 0) d[key] = n;
  };
  const whole = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : undefined);
  const decimal = (text: string) => (/^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : undefined);

  list('deny', f.deny);
  list('allow', f.allow);
  list('deny_countries', f.denyCountries);
  list('allow_countries', f.allowCountries);
  if ((d.deny_countries || d.allow_countries) && f.unknownCountry === 'allow')
    d.unknown_country = 'allow';
  count('connections', f.connections, whole);
  count('connections_per_address', f.perAddress, whole);
  count('rate', f.rate, decimal);
  count('burst', f.burst, whole);
  count('bandwidth', f.bandwidth, readBytes);
  count('max_body', f.maxBody, readBytes);
  if (f.users.length > 0)
    d.basic_auth = f.users.map((u) => ({
      name: u.name,
      ...(u.password ? { password: u.password } : {}),
    }));
  // The relay takes no day for every day.
  if (f.open.some((o) => o.days.length === 0)) faults.hours = { key: 'policy.hours.nodays' };
  if (f.open.length > 0)
    d.hours = { zone: f.zone.trim() || 'UTC', open: f.open.map((o) => ({ ...o })) };
  if (f.shadow) d.shadow = true;
  return { document: d, faults };
}

/** A part of the form: hours and their time zone are one. */
export type Part = Exclude<keyof PolicyForm, 'zone'>;

const parts: readonly Part[] = [
  'users',
  'signIn',
  'certificates',
  'webhooks',
  'deny',
  'allow',
  'denyCountries',
  'allowCountries',
  'unknownCountry',
  'connections',
  'perAddress',
  'rate',
  'burst',
  'bandwidth',
  'maxBody',
  'open',
  'shadow',
  'rest',
];
function text(f: PolicyForm, part: Part): string | undefined {
  if (part === 'open') return JSON.stringify([f.open, f.open.length > 0 && f.zone]);
  // What is typed but not chosen changes nothing.
  if (part === 'signIn') return JSON.stringify(signInOf(f.signIn));
  if (part === 'certificates') return JSON.stringify(certificatesOf(f.certificates));
  return JSON.stringify(f[part]);
}

/** Returns the parts in which two forms differ, in the order of the page. */
export function changed(a: PolicyForm, b: PolicyForm): Part[] {
  return parts.filter((part) => text(a, part) !== text(b, part));
}

/**
 * Returns what others have saved meanwhile with one's own changes to what was there
 * before on top of it, and the parts that both have changed: they are as one has them.
 */
export function merge(
  before: PolicyForm,
  mine: PolicyForm,
  theirs: PolicyForm,
): { form: PolicyForm; both: Part[] } {
  const own = changed(before, mine);
  const form = { ...theirs };
  for (const part of own) Object.assign(form, { [part]: mine[part] });
  if (own.includes('open')) form.zone = mine.zone;
  const differ = changed(mine, theirs);
  return {
    form,
    both: changed(before, theirs).filter((p) => own.includes(p) && differ.includes(p)),
  };
}
