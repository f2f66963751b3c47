import { describe, expect, it, vi } from 'vitest';
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
  it('keep an end to the second, and in the hour that a clock set back repeats', () => {
    vi.stubEnv('TZ', 'Europe/Berlin');
    for (const expires_at of ['2027-01-01T10:00:07Z', '2026-10-25T01:30:00Z'])
      expect(scopeOf(scopeForm({ expires_at })).scope).toEqual({ expires_at });
    vi.unstubAllEnvs();
  });
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
