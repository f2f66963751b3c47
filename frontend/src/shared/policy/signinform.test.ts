import { describe, expect, it } from 'vitest';
import { documentOf, formOf } from './policyform';
import { choices, signInFaults, signInForm, signInOf, type SignInDocument } from './signinform';

const listed: SignInDocument = {
  provider: 'company',
  emails: ['ann@example.com', '@partner.example'],
  groups: ['ops', 'cn=shop,dc=example'],
};
const faults = (over: Partial<SignInDocument>) => signInFaults({ provider: 'company', ...over });

describe('who signs in, and its form', () => {
  it.each([listed, { provider: 'company', anyone: true }])('keep each other: %o', (d) => {
    expect(signInOf(signInForm(d))).toEqual(d);
    expect(signInFaults(d)).toEqual({});
    expect(documentOf(formOf({ sign_in: d }))).toEqual({ document: { sign_in: d }, faults: {} });
  });
  it('are nothing together', () => expect(signInOf(signInForm(undefined))).toBeUndefined());
  it('take lines as they are typed', () => {
    const form = { ...signInForm(undefined), provider: 'company' };
    form.emails = ' ann@example.com, @partner.example\n\n';
    form.groups = 'ops\r\n  cn=shop,dc=example \n';
    expect(signInOf(form)).toEqual(listed);
  });
  it('send one of lists and anyone, and keep what was typed', () => {
    const form = signInForm(listed);
    form.who = 'anyone';
    expect(signInOf(form)).toEqual({ provider: 'company', anyone: true });
    form.provider = '';
    expect(signInOf(form)).toBeUndefined();
    Object.assign(form, { provider: 'company', who: 'listed' });
    expect(signInOf(form)).toEqual(listed);
  });
  it('keep what a newer relay has', () => {
    const newer = { ...listed, moon_phase: 'full' } as SignInDocument;
    expect(signInOf(signInForm(newer))).toEqual(newer);
  });
});

describe('what is checked', () => {
  it('is that somebody is let in', () =>
    expect(faults({})).toEqual({ 'sign_in.emails': { key: 'policy.signin.nobody' } }));
  it.each(['ann@example.com', '@example.com', 'Ann@EXAMPLE.com', `${'a'.repeat(64)}@b`])(
    'takes %s',
    (email) => expect(faults({ emails: [email] })).toEqual({}),
  );
  it.each(['ann', 'ann@', '@', 'a@b@c', 'a b@c', `${'a'.repeat(65)}@b`, `@${'b'.repeat(254)}`])(
    'does not take %s',
    (email) =>
      expect(faults({ emails: ['ok@example.com', email] })).toEqual({
        'sign_in.emails': { key: 'policy.signin.email.wrong', params: { email } },
      }),
  );
  it('counts the bytes of a group', () => {
    expect(faults({ groups: ['é'.repeat(128)] })).toEqual({});
    expect(faults({ groups: ['é'.repeat(129)] })).toEqual({
      'sign_in.groups': { key: 'policy.signin.group.long', params: { n: 256 } },
    });
  });
  it('bounds each list', () => {
    const many = { key: 'policy.signin.many', params: { n: 1000 } };
    const thousand = Array.from({ length: 1000 }, (_, i) => `${i}@example.com`);
    expect(faults({ emails: thousand, groups: thousand })).toEqual({});
    expect(faults({ emails: [...thousand, '@b'], groups: [...thousand, 'b'] })).toEqual({
      'sign_in.emails': many,
      'sign_in.groups': many,
    });
  });
});

describe('what can be chosen', () => {
  it('is what the relay has, and what was there', () => {
    const form = signInForm(listed);
    form.provider = 'partners';
    expect(choices(form, ['partners'])).toEqual([
      { name: 'partners', gone: false },
      { name: 'company', gone: true },
    ]);
  });
  it('is not said to be gone before the relay has answered', () =>
    expect(choices(signInForm(listed), undefined)).toEqual([{ name: 'company', gone: false }]));
  it('is nothing where there is nothing', () =>
    expect(choices(signInForm(undefined), [])).toEqual([]));
});
