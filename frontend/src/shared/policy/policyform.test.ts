import { describe, expect, it } from 'vitest';
import { changed, documentOf, formOf, merge, type PolicyDocument } from './policyform';

const all: PolicyDocument = {
  deny: ['10.0.0.0/8', '192.0.2.7'],
  allow: ['2001:db8::/32'],
  deny_countries: ['CN', 'US-CA'],
  allow_countries: ['DE'],
  unknown_country: 'allow',
  hours: { zone: 'Europe/Berlin', open: [{ days: ['mon', 'fri'], from: '08:00', to: '18:30' }] },
  connections: 100,
  connections_per_address: 10,
  rate: 2.5,
  burst: 20,
  bandwidth: 1_000_000,
  max_body: 10 * 1024 ** 2,
  basic_auth: [{ name: 'ann' }],
  sign_in: { provider: 'company', emails: ['@example.com'], groups: ['ops'] },
  shadow: true,
};

const number = { key: 'form.number' };

describe('a policy and its form', () => {
  it('keep each other', () =>
    expect(documentOf(formOf(all))).toEqual({ document: all, faults: {} }));
  it('are empty together', () => expect(documentOf(formOf({})).document).toEqual({}));
  it('send a password that was typed', () => {
    const form = formOf(all);
    form.users.push({ name: 'bob', password: 'secret', kept: false });
    expect(documentOf(form).document.basic_auth).toEqual([
      { name: 'ann' },
      { name: 'bob', password: 'secret' },
    ]);
  });
  it('name what is no number', () => {
    const form = { ...formOf({}), rate: 'much', maxBody: '10 parsec', burst: '1.5' };
    expect(documentOf(form).faults).toEqual({
      rate: number,
      max_body: number,
      burst: number,
    });
  });
  it('keep a rule that a newer relay has', () => {
    const newer = { deny: ['192.0.2.7'], moon_phase: 'full' } as PolicyDocument;
    expect(documentOf(formOf(newer)).document).toEqual(newer);
  });
  it('never hold a password that was given', () => {
    const form = formOf({ basic_auth: [{ name: 'ann', password: 'leaked' }] });
    expect(JSON.stringify(form)).not.toContain('leaked');
  });
  it('write countries as they are written', () =>
    expect(
      documentOf({ ...formOf({}), denyCountries: 'cn, us-ca' }).document.deny_countries,
    ).toEqual(['CN', 'US-CA']));
});

describe('a policy that two have changed', () => {
  const form = (more: PolicyDocument) => formOf({ ...all, ...more });
  const merged = (mine: PolicyDocument, theirs: PolicyDocument) => {
    const { form: made, both } = merge(formOf(all), form(mine), form(theirs));
    return { document: documentOf(made).document, both };
  };
  it('has the changes of both', () =>
    expect(merged({ rate: 7 }, { deny: ['192.0.2.9'], shadow: false })).toEqual({
      document: { ...documentOf(form({ rate: 7, deny: ['192.0.2.9'], shadow: false })).document },
      both: [],
    }));
  it('has what one typed where both changed something', () =>
    expect(merged({ rate: 7, burst: 3 }, { rate: 8, burst: 3 })).toEqual({
      document: { ...all, rate: 7, burst: 3 },
      both: ['rate'],
    }));
  it('keeps a time zone with its hours', () => {
    const zoned = { hours: { zone: 'Asia/Shanghai', open: all.hours?.open ?? [] } };
    expect(merged(zoned, { rate: 8 }).document).toEqual({ ...all, ...zoned, rate: 8 });
    expect(merged({ rate: 8 }, zoned).document).toEqual({ ...all, ...zoned, rate: 8 });
  });
  it('keeps a password that was typed', () => {
    const mine = formOf(all);
    mine.users = [{ name: 'ann', password: 'new', kept: true }];
    expect(merge(formOf(all), mine, form({ rate: 8 })).form.users).toEqual(mine.users);
  });
  it('has who signs in of one of the two, whole', () => {
    const theirs = { sign_in: { provider: 'company', anyone: true } };
    expect(merged({ rate: 7 }, theirs).document).toEqual({ ...all, ...theirs, rate: 7 });
    const mine = { sign_in: { provider: 'partners', groups: ['ops'] } };
    expect(merged(mine, theirs)).toEqual({ document: { ...all, ...mine }, both: ['signIn'] });
  });
  it('takes who is listed for no change while nobody has to sign in', () => {
    const typed = formOf({});
    typed.signIn.emails = 'ann@example.com';
    expect(changed(formOf({}), typed)).toEqual([]);
  });
  it('takes hours of no day for a mistake: the relay has them on every day', () => {
    const form = formOf({ hours: { open: [{ days: [], from: '08:00', to: '18:00' }] } });
    expect(documentOf(form).faults).toEqual({ hours: { key: 'policy.hours.nodays' } });
  });
  it('takes a zone without hours for no change', () =>
    expect(changed(formOf({}), { ...formOf({}), zone: 'Asia/Tokyo' })).toEqual([]));
});
