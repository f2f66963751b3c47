import type { Tunnel, TunnelPath } from '../api/types';
import type { MessageKey } from '../i18n';
import { addressFault, isHost, isLoopback, portOf } from './address';

/** A path as it is being typed, and in one field where it leads. */
export interface PathForm {
  /** Tells it from the others while it is typed: two may be alike then. */
  key: number;
  path: string;
  to: string;
  strip: boolean;
  host_header: string;
}

export type PathField = `paths-${number}-${'path' | 'to' | 'host_header'}`;

/** How many paths a tunnel can have, and how many bytes each. */
export const mostPaths = 32;
const longest = 128;

type Target = Required<Pick<TunnelPath, 'local_ip' | 'local_port' | 'local_scheme'>>;

let last = 0;
export const newPath = (): PathForm => ({
  key: ++last,
  path: '',
  to: '',
  strip: false,
  host_header: '',
});

/** Returns a tunnel's paths; an older daemon knows of none. */
export const pathsOf = ({ paths }: Partial<Pick<Tunnel, 'paths'>>): readonly TunnelPath[] =>
  paths ?? [];

/** Says where a path leads, as parseTarget reads it: https://nas.local:8443, 127.0.0.1:8080. */
export function targetText({ local_ip, local_port, local_scheme }: TunnelPath): string {
  const ip = local_ip || '127.0.0.1';
  const scheme = local_scheme && local_scheme !== 'http' ? `${local_scheme}://` : '';
  return `${scheme}${ip.includes(':') ? `[${ip}]` : ip}:${local_port}`;
}

/** Says of each path where it leads. */
export const leads = (tunnel: Partial<Pick<Tunnel, 'paths'>>): string[] =>
  pathsOf(tunnel).map((p) => `${p.path} → ${targetText(p)}`);

/** Reads where a path leads: a port, or an address with a port, or with a scheme. */
export function parseTarget(text: string): Target | MessageKey {
  const m = /^(?:(https?|h2c):\/\/)?(\[[^\s/[\]]+\]|[^\s:/?#@[\]]*)(?::(\d+))?\/?$/i.exec(
    text.trim(),
  );
  const [, said = '', host = '', digits] = m ?? [];
  const scheme = said.toLowerCase() as Target['local_scheme'];
  const bare = !scheme && digits === undefined && /^\d+$/.test(host);
  if (!m || (!bare && digits === undefined && !(scheme && host))) return 'form.path.to.invalid';
  const local_port = portOf(bare ? host : (digits ?? (scheme === 'https' ? '443' : '80')));
  if (!local_port) return 'form.port.invalid';
  const local_ip = (!bare && host.replace(/^\[|\]$/g, '')) || '127.0.0.1';
  return addressFault(local_ip) ?? { local_ip, local_port, local_scheme: scheme || 'http' };
}

export const pathForms = (tunnel: Partial<Pick<Tunnel, 'paths'>>): PathForm[] =>
  pathsOf(tunnel).map((p) => ({
    ...newPath(),
    path: p.path,
    to: targetText(p),
    strip: p.strip ?? false,
    host_header: p.host_header ?? '',
  }));

/** Returns what the rows that have no mistake say, without what goes without saying. */
export function readPaths(rows: readonly PathForm[]): TunnelPath[] {
  return rows.flatMap((row) => {
    const target = parseTarget(row.to);
    if (typeof target === 'string') return [];
    const { local_scheme, ...address } = target;
    return {
      path: row.path.trim(),
      ...address,
      ...(local_scheme !== 'http' && { local_scheme }),
      ...(row.host_header.trim() && { host_header: row.host_header.trim() }),
      ...(row.strip && { strip: true }),
    };
  });
}

function pathFault(path: string): MessageKey | undefined {
  if (!path) return 'form.path.missing';
  if (!path.startsWith('/')) return 'form.path.slash';
  if (path === '/') return 'form.path.root';
  const parts = path.slice(1).replace(/\/$/, '').split('/');
  if (parts.some((part) => ['', '.', '..'].includes(part))) return 'form.path.segments';
  if (path.endsWith('/')) return 'form.path.end';
  if (/[?#\p{Cc}]/u.test(path)) return 'form.path.signs';
  if (/%[\da-f]{2}/i.test(path)) return 'form.path.encoded';
  if (new TextEncoder().encode(path).length > longest) return 'form.path.long';
  return undefined;
}

function targetFault(to: string, ownPort: string): MessageKey | undefined {
  if (!to.trim()) return 'form.path.to.missing';
  const target = parseTarget(to);
  if (typeof target === 'string') return target;
  const own = isLoopback(target.local_ip.toLowerCase()) && String(target.local_port) === ownPort;
  return own ? 'form.port.own' : undefined;
}

/** Checks paths as they are typed, by row and field. ownPort is where this page was served. */
export function checkPaths(
  rows: readonly PathForm[],
  ownPort = '',
): Partial<Record<PathField, MessageKey>> {
  const errors: Partial<Record<PathField, MessageKey>> = {};
  const note = (field: PathField, fault: MessageKey | undefined) => {
    if (fault) errors[field] = fault;
  };
  const paths = rows.map((row) => row.path.trim());
  for (const [i, { key, to, host_header }] of rows.entries()) {
    const path = paths[i] ?? '';
    const twice = paths.indexOf(path) !== paths.lastIndexOf(path);
    note(`paths-${key}-path`, pathFault(path) ?? (twice ? 'form.path.twice' : undefined));
    note(`paths-${key}-to`, targetFault(to, ownPort));
    const host = host_header.trim();
    note(`paths-${key}-host_header`, host && !isHost(host) ? 'form.host.invalid' : undefined);
  }
  return errors;
}
