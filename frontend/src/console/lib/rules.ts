import type { PolicyDocument } from '../api/types';
import { t, type MessageKey } from '../i18n';
import { en } from '../i18n/en';

/** Returns what a rule of a policy is called, or its bare name if it is new to this page. */
export function ruleName(rule: string): string {
  const key = `rule.${rule}`;
  return key in en ? t(key as MessageKey) : rule;
}

/** Returns the names of the rules that a policy has. */
export function rulesOf(d: PolicyDocument): string[] {
  const all: readonly (keyof PolicyDocument)[] = [
    'deny',
    'allow',
    'deny_countries',
    'allow_countries',
    'hours',
    'connections',
    'connections_per_address',
    'rate',
    'bandwidth',
    'max_body',
    'basic_auth',
    'sign_in',
    'client_certificates',
    'webhooks',
  ];
  return all
    .filter((name) => {
      const value = d[name];
      return Array.isArray(value) ? value.length > 0 : !!value;
    })
    .map(ruleName);
}
