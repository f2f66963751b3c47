import type { MessageKey } from '../i18n';
import type { Tunnel, TunnelCreate, TunnelMode, TunnelType, TunnelUpdate } from '../api/types';
import { addressFault, isHost, isLoopback, isDomain, portOf } from './address';
import { lines } from '../../shared/lib/words';
import { headersOf, headersText, parseHeaders } from './headerlines';
import { checkPaths, pathForms, readPaths, type PathField, type PathForm } from './pathform';
import { eachPort, portsFault, portsOf } from './portrange';
import { isPrivateName, visitorsFault, visitorsOf } from './privatetunnel';

/** A tunnel as it is being typed: numbers are still text, and so are lists, a line each. */
export interface TunnelForm {
  type: TunnelType;
  mode: TunnelMode;
  name: string;
  local_ip: string;
  local_port: string;
  local_scheme: '' | 'http' | 'https' | 'h2c';
  domain: string;
  remote_port: string;
  /** How many are published at once. A tunnel that there is has one. */
  ports: string;
  visitors: string;
  /** That visitors are asked for from the first on; of a tunnel that is yet to be made. */
  password: string;
  host_header: string;
  request_headers: string;
  response_headers: string;
  paths: readonly PathForm[];
  proxy_protocol: '' | 'v1' | 'v2';
  inspect: boolean;
  ephemeral: boolean;
}

export type FormField = keyof TunnelForm | PathField;
export type FormErrors = Partial<Record<FormField, MessageKey>>;

export const emptyForm: TunnelForm = {
  type: 'https',
  mode: 'standard',
  name: '',
  local_ip: '127.0.0.1',
  local_port: '',
  local_scheme: 'http',
  domain: '',
  remote_port: '',
  ports: '',
  visitors: '',
  password: '',
  host_header: '',
  request_headers: '',
  response_headers: '',
  paths: [],
  proxy_protocol: '',
  inspect: true,
  ephemeral: false,
};

export function formOf(tunnel: Tunnel): TunnelForm {
  return {
    ...tunnel,
    local_port: String(tunnel.local_port),
    local_scheme: tunnel.local_scheme || 'http',
    remote_port: tunnel.remote_port ? String(tunnel.remote_port) : '',
    ports: '',
    visitors: visitorsOf(tunnel).join('\n'),
    password: '',
    request_headers: headersText(tunnel.request_headers),
    response_headers: headersText(tunnel.response_headers),
    paths: pathForms(tunnel),
  };
}

type Kind = Pick<TunnelForm, 'type' | 'mode'>;

/** Reports whether a type is of ports, which can be private. */
export const isPlain = (type: TunnelType) => type === 'tcp' || type === 'udp';

/** The modes of a type; what another type had chosen is kept for it. */
export const modesOf = (type: TunnelType): readonly TunnelMode[] =>
  isPlain(type) ? ['standard', 'balanced', 'private'] : ['standard', 'balanced'];
export const modeOf = ({ type, mode }: Kind): TunnelMode =>
  modesOf(type).includes(mode) ? mode : 'standard';
export const isPrivate = (f: Kind) => modeOf(f) === 'private';

/** Which fields a tunnel has. */
export const hasPort = (f: Kind) => isPlain(f.type) && !isPrivate(f);
export const hasDomain = (f: Kind) => !hasPort(f);
export const isHttp = (type: TunnelType) => type === 'http' || type === 'https';

/** Checks a form as it is typed. ownPort is where this page was served. */
export function check(f: TunnelForm, ownPort = ''): FormErrors {
  const errors: FormErrors = {};
  const ip = f.local_ip.trim().toLowerCase();
  if (!f.local_port.trim()) errors.local_port = 'form.port.missing';
  else if (!portOf(f.local_port.trim())) errors.local_port = 'form.port.invalid';
  else if (isLoopback(ip || '127.0.0.1') && f.local_port.trim() === ownPort)
    errors.local_port = 'form.port.own';
  const address = ip && addressFault(ip);
  if (address) errors.local_ip = address;
  const domain = f.domain.trim();
  if (isPrivate(f)) {
    if (domain && !isPrivateName(domain)) errors.domain = 'form.label.invalid';
    const visitors = visitorsFault(lines(f.visitors));
    if (visitors) errors.visitors = visitors;
  } else if (hasDomain(f) && domain && !isDomain(domain)) errors.domain = 'form.domain.invalid';
  if (hasPort(f) && f.remote_port.trim() && !portOf(f.remote_port.trim()))
    errors.remote_port = 'form.port.invalid';
  const ports = hasPort(f) && portsFault(f.ports, [f.local_port, f.remote_port]);
  if (ports) errors.ports = ports;
  const host = f.host_header.trim();
  if (isHttp(f.type) && host && !isHost(host)) errors.host_header = 'form.host.invalid';
  for (const field of ['request_headers', 'response_headers'] as const) {
    const fields = parseHeaders(f[field]);
    if (isHttp(f.type) && typeof fields === 'string') errors[field] = fields;
  }
  if (isHttp(f.type) && new TextEncoder().encode(f.password).length > 72)
    errors.password = 'form.password.long';
  if ([...f.name].length > 64) errors.name = 'form.name.long';
  return isHttp(f.type) ? { ...errors, ...checkPaths(f.paths, ownPort) } : errors;
}

/** The user name of visitors who are asked for a tunnel's password. */
export const guest = 'guest';

/** Returns the request that creates the tunnel of a form that has no errors. */
export function toCreate(f: TunnelForm): TunnelCreate {
  const wanted: TunnelCreate = {
    type: f.type,
    mode: modeOf(f),
    local_ip: f.local_ip.trim() || '127.0.0.1',
    local_port: Number(f.local_port),
  };
  if (f.name.trim()) wanted.name = f.name.trim();
  if (hasDomain(f) && f.domain.trim()) wanted.domain = f.domain.trim();
  if (isPrivate(f) && f.visitors.trim()) wanted.visitors = lines(f.visitors);
  if (hasPort(f) && f.remote_port.trim()) wanted.remote_port = Number(f.remote_port);
  if (isHttp(f.type)) {
    if (f.local_scheme && f.local_scheme !== 'http') wanted.local_scheme = f.local_scheme;
    if (f.host_header.trim()) wanted.host_header = f.host_header.trim();
    for (const field of ['request_headers', 'response_headers'] as const)
      if (f[field].trim()) wanted[field] = headersOf(f[field]);
    if (f.paths.length > 0) wanted.paths = readPaths(f.paths);
    if (f.password) wanted.policy = { basic_auth: [{ name: guest, password: f.password }] };
  }
  if (f.proxy_protocol && f.type !== 'udp') wanted.proxy_protocol = f.proxy_protocol;
  if (!f.inspect) wanted.inspect = false;
  if (f.ephemeral) wanted.ephemeral = true;
  return wanted;
}

/** Returns the requests for all ports of such a form. */
export const toCreates = (f: TunnelForm): TunnelCreate[] =>
  eachPort(toCreate(f), (hasPort(f) && portsOf(f.ports)) || 1);

/** Returns all that can be changed in a tunnel. */
function changeable(f: TunnelForm): Required<Omit<TunnelUpdate, 'type'>> {
  return {
    mode: modeOf(f),
    name: f.name.trim(),
    local_ip: f.local_ip.trim() || '127.0.0.1',
    local_port: Number(f.local_port),
    local_scheme: f.local_scheme,
    domain: f.domain.trim(),
    remote_port: Number(f.remote_port || 0),
    visitors: lines(f.visitors),
    host_header: f.host_header.trim(),
    request_headers: headersOf(f.request_headers),
    response_headers: headersOf(f.response_headers),
    paths: readPaths(f.paths),
    proxy_protocol: f.proxy_protocol,
    inspect: f.inspect,
  };
}

/** Returns a value as text that is the same in whatever order its parts stand. */
function ordered(value: unknown): string {
  if (Array.isArray(value)) return value.map(ordered).sort().join('\n\n');
  return typeof value === 'object' ? headersText({ ...value }) : String(value);
}

/** Reports whether the form shows a field, of those that depend on the mode. */
function shows(f: TunnelForm, field: string): boolean {
  if (field === 'domain') return hasDomain(f);
  if (field === 'remote_port') return hasPort(f);
  return field !== 'visitors' || isPrivate(f);
}

/**
 * Returns what differs from the tunnel; undefined if nothing does. What a new mode does
 * not have goes with the old one: it is not told.
 */
export function toUpdate(f: TunnelForm, tunnel: Tunnel): TunnelUpdate | undefined {
  const before = changeable(formOf(tunnel));
  const changed = Object.entries(changeable(f)).filter(
    ([key, value]) =>
      shows(f, key) && ordered(value) !== ordered(before[key as keyof typeof before]),
  );
  return changed.length > 0 ? (Object.fromEntries(changed) as TunnelUpdate) : undefined;
}

/** Reports whether a change would put aside what others have made of the tunnel since it was read. */
export function clashes(change: TunnelUpdate, read: Tunnel, now: Tunnel): boolean {
  const [before, after] = [changeable(formOf(read)), changeable(formOf(now))];
  return (Object.keys(change) as (keyof typeof before)[]).some((field) => {
    const found = ordered(after[field]);
    return found !== ordered(before[field]) && found !== ordered(change[field]);
  });
}

/**
 * Returns a form with the address taken apart that was written, whole, where only a part
 * is asked for.
 */
export const apart = (f: TunnelForm): TunnelForm => ({
  ...f,
  ...(parseOrigin(f.local_port) ?? parseOrigin(f.local_ip)),
});

/** Reports whether what is being typed as a port may become an address. */
export const mayBecomeOrigin = (port: string): boolean => /[^\d\s]/.test(port);

/** Reads an address: "http://localhost:5173/x", "192.168.1.4:8080", "[::1]:3000". */
export function parseOrigin(
  text: string,
): Pick<TunnelForm, 'local_ip' | 'local_port' | 'local_scheme'> | undefined {
  const m = /^(?:(https?):\/\/)?(\[[0-9a-f:.]+\]|[^\s:/[\]]+)(?::(\d{1,5}))?(?:[/?#]\S*)?$/i.exec(
    text.trim(),
  );
  const [, scheme, host, digits] = m ?? [];
  if (!host || (!scheme && !digits)) return undefined;
  return {
    local_ip: host.replace(/^\[|\]$/g, ''),
    local_port: digits ?? (scheme?.toLowerCase() === 'https' ? '443' : '80'),
    local_scheme: scheme?.toLowerCase() === 'https' ? 'https' : 'http',
  };
}
