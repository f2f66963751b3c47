/** Several ports that are published at once, a tunnel each, as by `--ports` of the command line. */
import type { MessageKey } from '../i18n';
import type { TunnelCreate } from '../api/types';
import { portOf } from './address';

/** How many ports a range may have. */
const most = 256;

/** Returns how many ports a text says, where nothing is one; undefined if it says no number. */
export function portsOf(text: string): number | undefined {
  const n = text.trim() ? portOf(text.trim()) : 1;
  return n && n <= most ? n : undefined;
}

/** Says what is wrong with a number of ports, counted from each of the first ones. */
export function portsFault(text: string, firsts: readonly string[]): MessageKey | undefined {
  const n = portsOf(text);
  if (!n) return 'form.ports.invalid';
  return firsts.some((first) => (portOf(first.trim()) ?? 0) + n - 1 > 65_535)
    ? 'form.ports.end'
    : undefined;
}

/** Returns the tunnels of so many ports; public ones follow the first if there is one. */
export function eachPort(first: TunnelCreate, ports: number): TunnelCreate[] {
  if (ports === 1) return [first];
  return Array.from({ length: ports }, (_, n) => {
    const one = { ...first, local_port: first.local_port + n };
    if (first.remote_port) one.remote_port = first.remote_port + n;
    if (first.name) one.name = `${first.name}-${one.local_port}`;
    return one;
  });
}

/** Why one of several ports is not published, so that none is. */
export class PortError extends Error {
  readonly port: number;
  /** The tunnels of other ports that could not be deleted again. */
  readonly left: readonly string[];

  constructor(port: number, cause: unknown, left: readonly string[]) {
    super(`port ${port}`, { cause });
    this.port = port;
    this.left = left;
  }
}
