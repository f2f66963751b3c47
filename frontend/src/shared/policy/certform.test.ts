import { describe, expect, it } from 'vitest';
import { home, office } from '../../../e2e/certificate';
import {
  certificatesFaults,
  certificatesForm,
  certificatesOf,
  type CertificatesDocument,
} from './certform';
import { changed, documentOf, formOf } from './policyform';

const named: CertificatesDocument = {
  authorities: `${home}\n${office}\n`,
  names: ['ann@example.com', '@example.com', 'Home phone, black'],
};
const faults = (over: Partial<CertificatesDocument>) => certificatesFaults({ ...named, ...over });

describe('whose certificates let in, and their form', () => {
  it.each([named, { authorities: `${home}\n` }])('keep each other: %#', (d) => {
    expect(certificatesOf(certificatesForm(d))).toEqual(d);
    expect(certificatesFaults(d)).toEqual({});
    expect(documentOf(formOf({ client_certificates: d }))).toEqual({
      document: { client_certificates: d },
      faults: {},
    });
  });
  it('are nothing together', () => {
    expect(certificatesOf(certificatesForm(undefined))).toBeUndefined();
    expect(certificatesFaults(undefined)).toEqual({});
  });
  it('do not change by spaces alone', () => {
    const form = formOf({ client_certificates: named });
    form.certificates.authorities = `\n${form.certificates.authorities}  \n`;
    expect(changed(formOf({ client_certificates: named }), form)).toEqual([]);
    form.certificates.authorities = home;
    expect(changed(formOf({ client_certificates: named }), form)).toEqual(['certificates']);
  });
  it('keep what a newer relay has', () => {
    const newer = { ...named, moon_phase: 'full' } as CertificatesDocument;
    expect(certificatesOf(certificatesForm(newer))).toEqual(newer);
  });
});

describe('what is checked of certificates', () => {
  const authorities = 'client_certificates.authorities';
  it('is that there are some', () => {
    const form = { ...certificatesForm(undefined), names: 'ann@example.com' };
    expect(certificatesFaults(certificatesOf(form))).toEqual({
      [authorities]: { key: 'policy.certs.missing' },
    });
    expect(faults({ authorities: 'ca.pem' })).toEqual({
      [authorities]: { key: 'policy.certs.missing' },
    });
  });
  it('is that no private key is among them', () =>
    expect(faults({ authorities: `${home}\n-----BEGIN EC PRIVATE KEY-----\nx\n` })).toEqual({
      [authorities]: { key: 'policy.certs.key' },
    }));
  it('is that they can be read', () =>
    expect(faults({ authorities: `${home}\n${office.replace(/\nM/, '\nX')}` })).toEqual({
      [authorities]: { key: 'policy.certs.unread', params: { n: 2 } },
    }));
  it('is how many they are', () =>
    expect(faults({ authorities: `${home}\n`.repeat(17) })).toEqual({
      [authorities]: { key: 'policy.certs.many', params: { n: 16 } },
    }));
  it('counts names and their bytes', () => {
    expect(faults({ names: ['é'.repeat(128)] })).toEqual({});
    expect(faults({ names: ['é'.repeat(129)] })).toEqual({
      'client_certificates.names': { key: 'policy.certs.name.long', params: { n: 256 } },
    });
    expect(faults({ names: Array.from({ length: 1001 }, String) })).toEqual({
      'client_certificates.names': { key: 'policy.signin.many', params: { n: 1000 } },
    });
  });
});
