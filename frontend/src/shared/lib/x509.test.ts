import { describe, expect, it } from 'vitest';
import { home, nameless, office } from '../../../e2e/certificate';
import { certificatesIn } from './x509';

describe('certificates as PEM', () => {
  it('are read, whatever is between them', () =>
    expect(certificatesIn(`Subject: x\n${home}\r\n\n# the office\n${office}${nameless}`)).toEqual([
      { subject: 'Home CA, Example', until: new Date('2036-11-23T13:46:57Z') },
      { subject: 'Büro 办公室', until: new Date('2081-08-29T13:46:57Z') },
      { subject: '', until: new Date('2026-11-27T13:46:57Z') },
    ]));
  it('are none in other texts', () => {
    expect(certificatesIn('')).toEqual([]);
    expect(certificatesIn('-----BEGIN CERTIFICATE-----')).toEqual([]);
    expect(certificatesIn(home.replaceAll('CERTIFICATE', 'PRIVATE KEY'))).toEqual([]);
  });
  it('cannot be read where they are damaged', () => {
    const base64 = home.split('\n').slice(1, -1).join('');
    const der = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const again = (bytes: Uint8Array) =>
      `-----BEGIN CERTIFICATE-----\n${btoa(String.fromCharCode(...bytes))}\n-----END CERTIFICATE-----`;
    expect(certificatesIn(again(der))).toEqual(certificatesIn(home));
    for (let n = 0; n < der.length; n += 7)
      expect(certificatesIn(again(der.subarray(0, n)))).toEqual([undefined]);
    // Whatever is changed in it, the page lives on.
    for (let i = 0; i < der.length; i++)
      expect(certificatesIn(again(der.map((b, at) => (at === i ? b ^ 0xff : b))))).toHaveLength(1);
    expect(certificatesIn('-----BEGIN CERTIFICATE-----!!-----END CERTIFICATE-----')).toEqual([
      undefined,
    ]);
  });
});
