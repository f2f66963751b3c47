import { certificatesIn } from '../lib/x509';
import { groupsIn, type Mistake } from './signinform';

/** Whose certificates let visitors in, as both APIs have it. */
export interface CertificatesDocument {
  /** As PEM. */
  authorities: string;
  /** Who of those that they have given one; none: all. */
  names?: string[];
}

/** The same as its form has it. */
export interface CertificatesForm {
  authorities: string;
  names: string;
  /** What a newer relay knows and this form does not: it is given back as it came. */
  rest: Record<string, unknown>;
}

export type CertificatesFaults = Partial<
  Record<'client_certificates.authorities' | 'client_certificates.names', Mistake>
>;

// As the relay has it, in tunnel/relay/policy/certificates.go.
const mostAuthorities = 16;
const longestText = 64 * 1024;
const mostNames = 1000;
const longestName = 256;

/** Returns the form of a document, or of none. */
export function certificatesForm(d: CertificatesDocument | undefined): CertificatesForm {
  const { authorities = '', names = [], ...rest } = d ?? {};
  return { authorities, names: names.join('\n'), rest };
}

/** Returns the document of a form; undefined: no certificate lets in. */
export function certificatesOf(f: CertificatesForm): CertificatesDocument | undefined {
  const names = groupsIn(f.names);
  if (!f.authorities.trim() && names.length === 0) return undefined;
  return {
    ...f.rest,
    authorities: f.authorities.trim() ? `${f.authorities.trim()}\n` : '',
    ...(names.length > 0 ? { names } : {}),
  };
}

function wrongAuthorities(text: string): Mistake | undefined {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return { key: 'policy.certs.key' };
  const found = certificatesIn(text);
  if (found.length === 0) return { key: 'policy.certs.missing' };
  const unread = found.indexOf(undefined);
  if (unread >= 0) return { key: 'policy.certs.unread', params: { n: unread + 1 } };
  if (found.length > mostAuthorities || text.length > longestText)
    return { key: 'policy.certs.many', params: { n: mostAuthorities } };
  return undefined;
}

/** Returns what the relay would refuse in a document. */
export function certificatesFaults(d: CertificatesDocument | undefined): CertificatesFaults {
  if (!d) return {};
  const faults: CertificatesFaults = {};
  const authorities = wrongAuthorities(d.authorities);
  if (authorities) faults['client_certificates.authorities'] = authorities;
  const { names = [] } = d;
  if (names.length > mostNames)
    faults['client_certificates.names'] = { key: 'policy.signin.many', params: { n: mostNames } };
  else if (names.some((n) => new TextEncoder().encode(n).length > longestName))
    faults['client_certificates.names'] = {
      key: 'policy.certs.name.long',
      params: { n: longestName },
    };
  return faults;
}
