import type { Part } from '../../shared/policy/policyform';
import type { MessageKey } from '../i18n';
import type { ScopeForm } from './scopeform';
import type { SinkForm } from './sinkform';

/** What the parts of a form are called on the page. */

export const policyParts: Record<Part, MessageKey> = {
  users: 'policy.users',
  signIn: 'policy.signin',
  certificates: 'policy.certs',
  webhooks: 'policy.webhooks',
  deny: 'rule.deny',
  allow: 'rule.allow',
  denyCountries: 'rule.deny_countries',
  allowCountries: 'rule.allow_countries',
  unknownCountry: 'rule.unknown_country',
  connections: 'rule.connections',
  perAddress: 'rule.connections_per_address',
  rate: 'rule.rate',
  burst: 'policy.burst',
  bandwidth: 'rule.bandwidth',
  maxBody: 'rule.max_body',
  open: 'policy.hours',
  shadow: 'policy.shadow',
  rest: 'policy.rest',
};

export const scopeParts: Record<keyof ScopeForm, MessageKey> = {
  types: 'scope.types',
  domains: 'scope.domains',
  ports: 'scope.ports',
  tunnels: 'scope.tunnels',
  expires: 'scope.expires',
  bandwidth: 'scope.bandwidth',
  monthly: 'scope.monthly',
  over: 'scope.over',
  throttle: 'scope.throttle',
  ownPolicies: 'scope.policies',
  unproved: 'scope.unproved',
};

export const sinkParts: Record<keyof SinkForm, MessageKey> = {
  type: 'sink.type',
  to: 'sink.to',
  secret: 'sink.secret',
  kept: 'sink.secret',
  access: 'sink.access',
  refused: 'sink.refused',
  audit: 'sink.audit',
  client: 'sink.client',
  enabled: 'sink.enabled',
  rest: 'sink.rest',
};
