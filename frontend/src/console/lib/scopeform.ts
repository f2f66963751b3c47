import type { Scope } from '../api/types';
import { lines, readBytes, writeBytes } from '../../shared/lib/words';

export const tunnelTypes = ['http', 'https', 'tls', 'tcp', 'udp'] as const;

/** What a client may do, as a form has it. */
export interface ScopeForm {
  types: string[];
  domains: string;
  ports: string;
  tunnels: string;
  /** As the API has it: what a clock on the wall shows is not always one moment. */
  expires: string;
  bandwidth: string;
  monthly: string;
  over: 'warn' | 'throttle' | 'stop';
  throttle: string;
  ownPolicies: boolean;
  unproved: boolean;
}

/** The fields of a scope that the form has a place beside for what is wrong with them. */
export const scopeFields = [
  'domains',
  'ports',
  'tunnels',
  'expires_at',
  'bandwidth',
  'monthly_bytes',
  'throttle_bandwidth',
].map((field) => `scope.${field}`);

export function scopeForm(s: Scope = {}): ScopeForm {
  return {
    types: s.types ?? [],
    domains: (s.domains ?? []).join('\n'),
    ports: (s.ports ?? []).join(', '),
    tunnels: s.tunnels ? String(s.tunnels) : '',
    expires: s.expires_at ?? '',
    bandwidth: writeBytes(s.bandwidth),
    monthly: writeBytes(s.monthly_bytes),
    over: s.over_quota ?? 'warn',
    throttle: writeBytes(s.throttle_bandwidth),
    ownPolicies: s.own_policies ?? false,
    unproved: s.unproved_domains ?? false,
  };
}

/** Returns the scope of a form, and the fields that are no numbers. */
export function scopeOf(f: ScopeForm): {
  scope: Scope;
  faults: Partial<Record<keyof Scope, true>>;
} {
  const scope: Scope = {};
  const faults: Partial<Record<keyof Scope, true>> = {};
  if (f.types.length > 0 && f.types.length < tunnelTypes.length) scope.types = [...f.types];
  const domains = lines(f.domains);
  if (domains.length > 0) scope.domains = domains;
  const ports = lines(f.ports);
  if (ports.length > 0) scope.ports = ports;
  if (f.tunnels.trim()) {
    if (/^\d+$/.test(f.tunnels.trim())) scope.tunnels = Number(f.tunnels);
    else faults.tunnels = true;
  }
  if (f.expires) scope.expires_at = f.expires;
  const size = (key: 'bandwidth' | 'monthly_bytes' | 'throttle_bandwidth', text: string) => {
    if (!text.trim()) return;
    const n = readBytes(text);
    if (n === undefined) faults[key] = true;
    else if (n > 0) scope[key] = n;
  };
  size('bandwidth', f.bandwidth);
  size('monthly_bytes', f.monthly);
  if (scope.monthly_bytes) scope.over_quota = f.over;
  if (scope.over_quota === 'throttle') size('throttle_bandwidth', f.throttle);
  if (f.ownPolicies) scope.own_policies = true;
  if (f.unproved) scope.unproved_domains = true;
  return { scope, faults };
}
