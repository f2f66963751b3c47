import { describe, expect, it } from 'vitest';
import { changed, documentOf, formOf } from './policyform';
import {
  another,
  choose,
  keeps,
  newWebhook,
  offered,
  providerNames,
  webhookFaults,
  webhookForm,
  webhookOf,
  type WebhookDocument,
  type WebhookForm,
} from './webhookform';

const stored: WebhookDocument = { path: '/hooks/github', provider: 'github' };
const hmac: WebhookDocument = {
  path: '/in',
  provider: 'hmac',
  header: 'X-Sign',
  algorithm: 'sha512',
  encoding: 'base64',
  prefix: 'v1=',
};

describe('webhooks, and their form', () => {
  it.each([stored, hmac])('keep each other: %o', (d) => {
    expect(webhookOf(webhookForm(d))).toEqual(d);
    expect(documentOf(formOf({ webhooks: [d] }))).toEqual({
      document: { webhooks: [d] },
      faults: {},
    });
  });
  it('are left out where there is none', () => expect(documentOf(formOf({})).document).toEqual({}));
  it('send the secret, and the one before it', () => {
    const form = webhookForm(stored);
    Object.assign(form, { secret: ' the new one\n', former: 'the old one' });
    expect(webhookOf(form).secrets).toEqual(['the new one', 'the old one']);
  });
  it('are every path without one', () =>
    expect(webhookOf({ ...newWebhook('slack'), path: ' ' }).path).toBe('/'));
  it('send what is of HMAC for HMAC alone', () => {
    const form = webhookForm(hmac);
    form.provider = 'github';
    expect(webhookOf(form)).toEqual({ path: '/in', provider: 'github' });
  });
  it('keep what a newer relay has', () => {
    const newer = { ...stored, moon_phase: 'full' } as WebhookDocument;
    expect(webhookOf(webhookForm(newer))).toEqual(newer);
  });
  it('offer what the relay knows, and what is there', () => {
    const known = ['hmac', 'github', 'tomorrow'];
    expect(offered(newWebhook('slack'), known)).toEqual(['hmac', 'github', 'slack', 'tomorrow']);
  });
  it('offer all of them by name, behind those that are of no one provider', () => {
    const all = offered(newWebhook('slack'), Object.keys(providerNames).reverse());
    expect(all.slice(0, 2)).toEqual(['standard', 'hmac']);
    const names = all.slice(2).map((p) => providerNames[p]!.toLowerCase());
    expect(names).toEqual(names.toSorted());
    expect(names.length).toBe(Object.keys(providerNames).length - 2);
  });
  it('have the path of another provider, unless somebody wrote it', () => {
    const path = (f: WebhookForm, provider: string) => {
      choose(f, 'provider', provider);
      expect(f.provider).toBe(provider);
      return f.path;
    };
    const github = (f: Partial<WebhookForm> = {}) => ({ ...newWebhook('github'), ...f });
    expect(path(github(), 'twilio')).toBe('/hooks/twilio');
    expect(path(github(), 'hmac')).toBe('/hooks');
    expect(path(github({ path: '/in' }), 'twilio')).toBe('/in');
    expect(path(github({ stored: 'github /hooks/github' }), 'twilio')).toBe('/hooks/github');
  });
  it('begin with GitHub, and go on with what is not there', () => {
    const known = ['asana', 'github'];
    expect(another([], known)).toBe('github');
    expect(another([newWebhook('github')], known)).toBe('asana');
    expect(another([newWebhook('github'), newWebhook('asana')], known)).toBe('hmac');
    expect(another([], ['slack'])).toBe('slack');
  });
  it('are a part of the form that can change', () => {
    const before = formOf({ webhooks: [stored] });
    const after = formOf({ webhooks: [stored] });
    expect(changed(before, after)).toEqual([]);
    after.webhooks[0]!.secret = 'another one';
    expect(changed(before, after)).toEqual(['webhooks']);
  });
});

describe('what is checked', () => {
  it('is a secret, unless the relay has one for path and provider', () => {
    const form = webhookForm(stored);
    expect([keeps(form), webhookFaults([form])]).toEqual([true, {}]);
    form.path = '/Hooks/GitHub/';
    expect(keeps(form)).toBe(true);
    form.path = '/another';
    const missing = { 'webhooks[0].secrets': { key: 'policy.webhook.secret.missing' } };
    expect([keeps(form), webhookFaults([form])]).toEqual([false, missing]);
    form.path = '/hooks/github';
    form.former = 'the old one alone';
    expect(webhookFaults([form])).toEqual(missing);
  });
  it('is the path', () => {
    const [a, b] = [newWebhook('github'), newWebhook('github')];
    a.secret = b.secret = 'long enough';
    a.path = 'hooks';
    b.path = '/HOOKS/';
    expect(webhookFaults([a, b])).toEqual({
      'webhooks[0].path': { key: 'policy.webhook.path.slash' },
    });
    a.path = '/hooks';
    expect(webhookFaults([a, b])).toEqual({ 'webhooks[1].path': { key: 'policy.webhook.twice' } });
  });
  it('is the header of HMAC', () =>
    expect(webhookFaults([{ ...newWebhook('hmac'), secret: 'long enough' }])).toEqual({
      'webhooks[0].header': { key: 'policy.webhook.header.missing' },
    }));
});
