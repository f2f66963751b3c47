import { describe, expect, it } from 'vitest';
import type { Scope } from '../api/types';
import { scopeForm, scopeOf } from './scopeform';

const all: Scope = {
  types: ['http', 'https'],
  domains: ['*.shop.example.com', 'shop'],
  ports: ['20000-20010', '25565'],
  tunnels: 5,
  expires_at: '2027-01-01T00:00:00Z',
  bandwidth: 1_250_000,
  monthly_bytes: 1_000_000_000_000,
  over_quota: 'throttle',
  throttle_bandwidth: 131_072,
  own_policies: true,
  unproved_domains: true,
};

describe('a scope and its form', () => {
  it('keep each other', () => expect(scopeOf(scopeForm(all))).toEqual({ scope: all, faults: {} }));
  it('bound nothing together', () => expect(scopeOf(scopeForm({})).scope).toEqual({}));
  it('take all types as no bound', () =>
    expect(
      scopeOf({ ...scopeForm({}), types: ['http', 'https', 'tls', 'tcp', 'udp'] }).scope,
    ).toEqual({}));
  it('name what is no number', () =>
    expect(scopeOf({ ...scopeForm({}), tunnels: 'many', monthly: '1 parsec' }).faults).toEqual({
      tunnels: true,
      monthly_bytes: true,
    }));
});
