import type { Tunnel } from '../api/types';
import type { MessageKey } from '../i18n';

/** A private tunnel's name, and that of a client, in any case: the daemon lowers them. */
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const client = /^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$/i;
const most = 100;

export const isPrivateName = (text: string): boolean => label.test(text);

/** Says what is wrong with the clients that may visit, if anything is. */
export function visitorsFault(names: readonly string[]): MessageKey | undefined {
  if (names.some((name) => name !== '*' && !client.test(name))) return 'form.visitors.invalid';
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
    return 'form.visitors.twice';
  return names.length > most ? 'form.visitors.most' : undefined;
}

/** Returns who may visit a tunnel; an older daemon knows of nobody. */
export const visitorsOf = (tunnel: Partial<Pick<Tunnel, 'visitors'>>): readonly string[] =>
  tunnel.visitors ?? [];

/** Ports below need rights that few have. */
const firstFree = 1024;

/**
 * Returns the command by which another client visits a private tunnel; empty if that has
 * no address yet, or is none. It goes into a shell, so the address has to be one. The port
 * is one that is easily remembered, or left to the command where the service's is not known
 * and 0.
 */
export function visitCommand({
  public_url: url,
  local_port: port,
}: Pick<Tunnel, 'public_url' | 'local_port'>): string {
  const [, called] = /^adit:\/\/([a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9-]*)$/.exec(url) ?? [];
  if (!called) return '';
  if (port === 0) return `adit visit ${called}`;
  const listen = port === 22 ? 2222 : port < firstFree ? 8000 + port : port;
  return `adit visit ${called} ${listen}`;
}
