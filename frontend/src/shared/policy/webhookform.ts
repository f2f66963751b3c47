import type { MessageKey } from '../i18n';
import type { Mistake } from './signinform';

/** A provider's webhooks at a path, as both APIs have them. */
export interface WebhookDocument {
  path?: string;
  provider: string;
  /** Written only: without them those of the same provider and path stay. */
  secrets?: string[];
  header?: string;
  algorithm?: string;
  encoding?: string;
  prefix?: string;
}

/** The same as its form has it. */
export interface WebhookForm {
  path: string;
  provider: string;
  secret: string;
  /** The secret before that one, which may still come for a while. */
  former: string;
  /** The path and provider whose secrets the relay has. */
  stored: string;
  header: string;
  algorithm: string;
  encoding: string;
  prefix: string;
  /** What a newer relay knows and this form does not: it is given back as it came. */
  rest: Record<string, unknown>;
}

export type WebhookFaults = Partial<
  Record<`webhooks[${number}].${'path' | 'secrets' | 'header'}`, Mistake>
>;

/** What each provider is called, in the order of the list. */
export const providerNames: Record<string, string> = {
  github: 'GitHub',
  gitlab: 'GitLab',
  stripe: 'Stripe',
  slack: 'Slack',
  shopify: 'Shopify',
  discord: 'Discord',
  standard: 'Standard Webhooks',
  hmac: 'HMAC',
};
export const algorithms = ['sha256', 'sha512', 'sha1'] as const;
export const encodings = ['hex', 'base64'] as const;

/** Returns a path as the relay compares it. */
const plain = (path: string) => path.trim().toLowerCase().replace(/\/+$/, '') || '/';
const identity = (path: string, provider: string) => `${provider} ${plain(path)}`;

/** Reports whether the relay has secrets for what the form says now. */
export const keeps = (f: WebhookForm): boolean => f.stored === identity(f.path, f.provider);

export const newWebhook = (provider: string): WebhookForm => ({
  path: provider === 'hmac' || provider === 'standard' ? '/hooks' : `/hooks/${provider}`,
  provider,
  secret: '',
  former: '',
  stored: '',
  header: '',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  rest: {},
});

/** Returns the form of what is stored. */
export function webhookForm(d: WebhookDocument): WebhookForm {
  const {
    path = '/',
    provider,
    header = '',
    algorithm = 'sha256',
    encoding = 'hex',
    prefix = '',
    ...rest
  } = d;
  delete rest.secrets;
  return {
    path,
    provider,
    secret: '',
    former: '',
    stored: identity(path, provider),
    header,
    algorithm,
    encoding,
    prefix,
    rest,
  };
}

/** Returns the document of a form. */
export function webhookOf(f: WebhookForm): WebhookDocument {
  const secrets = [f.secret, f.former].map((s) => s.trim()).filter(Boolean);
  const hmac = f.provider === 'hmac' && {
    header: f.header.trim(),
    algorithm: f.algorithm,
    encoding: f.encoding,
    ...(f.prefix.trim() ? { prefix: f.prefix.trim() } : {}),
  };
  return {
    ...f.rest,
    path: f.path.trim() || '/',
    provider: f.provider,
    ...(secrets.length > 0 ? { secrets } : {}),
    ...(hmac || {}),
  };
}

/** Returns what the relay would refuse, as far as the form can tell. */
export function webhookFaults(list: readonly WebhookForm[]): WebhookFaults {
  const faults: WebhookFaults = {};
  const known = new Set<string>();
  list.forEach((f, i) => {
    const say = (field: 'path' | 'secrets' | 'header', key: MessageKey) =>
      (faults[`webhooks[${i}].${field}`] = { key });
    const own = identity(f.path, f.provider);
    if (f.path.trim() && !f.path.trim().startsWith('/')) say('path', 'policy.webhook.path.slash');
    else if (known.has(own)) say('path', 'policy.webhook.twice');
    known.add(own);
    if (!f.secret.trim() && (!keeps(f) || f.former.trim()))
      say('secrets', 'policy.webhook.secret.missing');
    if (f.provider === 'hmac' && !f.header.trim()) say('header', 'policy.webhook.header.missing');
  });
  return faults;
}

/** Returns the providers that can be chosen: what the relay knows, and what is there. */
export const offered = (f: WebhookForm, known: readonly string[]): string[] => [
  ...new Set([
    ...Object.keys(providerNames).filter((p) => known.includes(p)),
    ...known,
    f.provider,
  ]),
];
