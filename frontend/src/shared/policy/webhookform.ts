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

/** What each provider is called. */
export const providerNames: Record<string, string> = {
  asana: 'Asana',
  bitbucket: 'Bitbucket',
  buildkite: 'Buildkite',
  calendly: 'Calendly',
  circleci: 'CircleCI',
  discord: 'Discord',
  docusign: 'Docusign',
  dropbox: 'Dropbox',
  forgejo: 'Forgejo',
  gitea: 'Gitea',
  github: 'GitHub',
  gitlab: 'GitLab',
  heroku: 'Heroku',
  hubspot: 'HubSpot',
  intercom: 'Intercom',
  jira: 'Jira',
  launchdarkly: 'LaunchDarkly',
  lemonsqueezy: 'Lemon Squeezy',
  line: 'LINE',
  linear: 'Linear',
  meta: 'Meta (Facebook, Instagram, WhatsApp)',
  mux: 'Mux',
  notion: 'Notion',
  paddle: 'Paddle',
  pagerduty: 'PagerDuty',
  paystack: 'Paystack',
  razorpay: 'Razorpay',
  sendgrid: 'SendGrid',
  sentry: 'Sentry',
  shopify: 'Shopify',
  slack: 'Slack',
  square: 'Square',
  stripe: 'Stripe',
  telegram: 'Telegram',
  terraform: 'Terraform',
  twilio: 'Twilio',
  typeform: 'Typeform',
  vercel: 'Vercel',
  webflow: 'Webflow',
  woocommerce: 'WooCommerce',
  workos: 'WorkOS',
  xero: 'Xero',
  zendesk: 'Zendesk',
  zoom: 'Zoom',
  standard: 'Standard Webhooks',
  hmac: 'HMAC',
};
/** Those that sign with a private key: their secret is the public one. */
export const publicKeys: readonly string[] = ['discord', 'sendgrid'];
/** Those that are of no one provider, which stand before the others. */
const general: readonly string[] = ['standard', 'hmac'];
export const algorithms = ['sha256', 'sha512', 'sha1'] as const;
export const encodings = ['hex', 'base64'] as const;

/** Returns a path as the relay compares it. */
const plain = (path: string) => path.trim().toLowerCase().replace(/\/+$/, '') || '/';
const identity = (path: string, provider: string) => `${provider} ${plain(path)}`;

/** Reports whether the relay has secrets for what the form says now. */
export const keeps = (f: WebhookForm): boolean => f.stored === identity(f.path, f.provider);

const usualPath = (provider: string) =>
  general.includes(provider) ? '/hooks' : `/hooks/${provider}`;

/** Sets what is chosen from a list. A path that nobody wrote goes with its provider. */
export const choose = (
  f: WebhookForm,
  field: 'provider' | 'algorithm' | 'encoding',
  value: string,
): void => {
  if (field === 'provider' && f.stored === '' && f.path === usualPath(f.provider)) {
    f.path = usualPath(value);
  }
  f[field] = value;
};

export const newWebhook = (provider: string): WebhookForm => ({
  path: usualPath(provider),
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
export const offered = (f: WebhookForm, known: readonly string[]): string[] => {
  const name = (p: string) => providerNames[p] ?? p;
  const all = [...new Set([...known, f.provider])];
  return [
    ...general.filter((p) => all.includes(p)),
    ...all
      .filter((p) => !general.includes(p))
      .sort((a, b) => name(a).localeCompare(name(b), 'en', { sensitivity: 'base' })),
  ];
};

/** Returns the provider that one more webhook is of, until another is chosen. */
export const another = (list: readonly WebhookForm[], known: readonly string[]): string =>
  ['github', ...known].find((p) => known.includes(p) && list.every((f) => f.provider !== p)) ??
  'hmac';
