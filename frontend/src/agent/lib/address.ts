import type { MessageKey } from '../i18n';

/** A name as DNS has it, and as networks at home do. */
const name =
  /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;
const ipv4 = /^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$/;
const ipv6 = /^[0-9a-f:]*:[0-9a-f:]*(:\d+\.\d+\.\d+\.\d+)?(%[\w.-]+)?$/i;
const metadata = ['169.254.169.254', 'fd00:ec2::254'];

/**
 * Letters of other alphabets count as letters: the daemon writes such names as DNS does,
 * and has the last word on them.
 */
const isName = (text: string): boolean =>
  name.test(text.replace(/[\p{L}\p{M}\p{N}]/gu, (sign) => (sign > '\x7f' ? 'x' : sign)));

/** A name, or all those below one: *.shop. */
export const isDomain = (text: string): boolean => isName(text.replace(/^\*\./, ''));

export function portOf(text: string): number | undefined {
  const n = Number(text);
  return /^\d{1,5}$/.test(text) && n >= 1 && n <= 65535 ? n : undefined;
}

export function isLoopback(ip: string): boolean {
  return ip === 'localhost' || ip === '::1' || ip.startsWith('127.');
}

function isAddress(text: string): boolean {
  // What looks like an IPv4 address must be one.
  if (/^[\d.]+$/.test(text)) return ipv4.test(text);
  return text.includes(':') ? ipv6.test(text) : isName(text);
}

/** Says what is wrong with the address of a local service, if anything is. */
export function addressFault(text: string): MessageKey | undefined {
  if (metadata.includes(text.toLowerCase())) return 'form.ip.metadata';
  return isAddress(text) ? undefined : 'form.ip.invalid';
}

/** Reports whether a Host header can be so: a name or an address, perhaps with a port. */
export function isHost(text: string): boolean {
  const host = text.replace(/:\d{1,5}$/, '');
  return name.test(host) || /^\[[0-9a-f:.]+\]$/i.test(host);
}
