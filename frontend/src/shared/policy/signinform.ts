import type { MessageKey, Params } from '../i18n';
import { lines } from '../lib/words';

/** Who has to have signed in, as both APIs have it. */
export interface SignInDocument {
  provider: string;
  /** Addresses, as ann@example.com, and all of a domain, as @example.com. */
  emails?: string[];
  groups?: string[];
  /** Everybody whom the provider knows. */
  anyone?: boolean;
}

/** The same as its form has it. What is typed stays while something else is chosen. */
export interface SignInForm {
  /** Empty: nobody has to sign in. */
  provider: string;
  /** The provider that was there, which the relay may have no more. */
  stored: string;
  who: 'listed' | 'anyone';
  emails: string;
  groups: string;
  /** What a newer relay knows and this form does not: it is given back as it came. */
  rest: Record<string, unknown>;
}

/** What to say of a field that is not filled in as it has to be. */
export interface Mistake {
  key: MessageKey;
  params?: Params;
}
export type SignInFaults = Partial<Record<'sign_in.emails' | 'sign_in.groups', Mistake>>;

// As the relay has it, in tunnel/relay/policy/signin.go.
const most = 1000;
const longest = 256;
const email = /^[^@\t\n\f\r ]{0,64}@[^@\t\n\f\r ]{1,253}$/u;

/** Returns the form of a document, or of none. */
export function signInForm(d: SignInDocument | undefined): SignInForm {
  const { provider = '', emails = [], groups = [], anyone = false, ...rest } = d ?? {};
  return {
    provider,
    stored: provider,
    who: anyone ? 'anyone' : 'listed',
    emails: emails.join('\n'),
    groups: groups.join('\n'),
    rest,
  };
}

/** Returns the groups, one a line: commas are a part of some names, as of cn=ops,dc=example. */
export const groupsIn = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

/** Returns the document of a form; undefined: nobody has to sign in. */
export function signInOf(f: SignInForm): SignInDocument | undefined {
  if (!f.provider) return undefined;
  if (f.who === 'anyone') return { ...f.rest, provider: f.provider, anyone: true };
  const emails = lines(f.emails);
  const groups = groupsIn(f.groups);
  return {
    ...f.rest,
    provider: f.provider,
    ...(emails.length > 0 ? { emails } : {}),
    ...(groups.length > 0 ? { groups } : {}),
  };
}

/** Returns what the relay would refuse in a document. */
export function signInFaults(d: SignInDocument | undefined): SignInFaults {
  if (!d || d.anyone) return {};
  const { emails = [], groups = [] } = d;
  if (emails.length + groups.length === 0)
    return { 'sign_in.emails': { key: 'policy.signin.nobody' } };
  const faults: SignInFaults = {};
  const many: Mistake = { key: 'policy.signin.many', params: { n: most } };
  const wrong = emails.find((e) => !email.test(e));
  if (emails.length > most) faults['sign_in.emails'] = many;
  else if (wrong !== undefined)
    faults['sign_in.emails'] = { key: 'policy.signin.email.wrong', params: { email: wrong } };
  if (groups.length > most) faults['sign_in.groups'] = many;
  else if (groups.some((g) => new TextEncoder().encode(g).length > longest))
    faults['sign_in.groups'] = { key: 'policy.signin.group.long', params: { n: longest } };
  return faults;
}

/**
 * Returns what can be chosen: what the relay has, and what was there though the relay
 * does not have it. Undefined providers are not known yet.
 */
export function choices(
  f: SignInForm,
  providers: readonly string[] | undefined,
): { name: string; gone: boolean }[] {
  const names = new Set([...(providers ?? []), f.stored, f.provider].filter(Boolean));
  return [...names].map((name) => ({ name, gone: !!providers && !providers.includes(name) }));
}
