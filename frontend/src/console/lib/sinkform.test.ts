import { describe, expect, it } from 'vitest';
import type { Sink } from '../api/types';
import { sinkForm, sinkOf } from './sinkform';

const hook: Sink = {
  type: 'webhook',
  url: 'https://siem.example.com/adit',
  events: ['access', 'audit'],
  refused_only: true,
  enabled: false,
};
const log: Sink = {
  type: 'syslog',
  address: 'tls://log.example.com:6514',
  events: ['audit', 'client'],
  refused_only: false,
  enabled: true,
  ca: '-----BEGIN CERTIFICATE-----',
  facility: 0,
};

describe('a sink and its form', () => {
  it('keep each other', () => {
    expect(sinkOf(sinkForm(hook))).toEqual(hook);
    expect(sinkOf(sinkForm(log))).toEqual(log);
  });
  it('send a secret that was typed, to a webhook alone', () => {
    const form = { ...sinkForm({ ...hook, has_secret: true }), secret: 'typed' };
    expect(sinkOf(form)).toEqual({ ...hook, secret: 'typed' });
    expect(sinkOf({ ...form, type: 'syslog' })).not.toHaveProperty('secret');
  });
  it('give a webhook nothing of a syslog', () =>
    expect(sinkOf({ ...sinkForm(log), type: 'webhook' })).not.toHaveProperty('ca'));
});
