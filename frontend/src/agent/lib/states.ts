import type { RequestSummary, Status, TunnelState } from '../api/types';
import { isWildcard } from '../../shared/lib/publicurl';
import { t } from '../i18n';
import type { Tone } from '../../shared/lib/tone';

export type { Tone };

export const statusTone: Record<Status['state'], Tone> = {
  unconfigured: 'idle',
  connecting: 'info',
  connected: 'ok',
  reconnecting: 'warn',
  paused: 'idle',
  rejected: 'bad',
};

export const tunnelTone: Record<TunnelState, Tone> = {
  starting: 'info',
  running: 'ok',
  waiting: 'warn',
  stopped: 'idle',
  failed: 'bad',
};

/** Returns the tone of a request or flow. */
export function requestTone(r: RequestSummary): Tone {
  if (r.state === 'failed') return 'bad';
  if (r.state === 'open') return 'info';
  const status = r.status ?? 0;
  if (status >= 500) return 'bad';
  if (status >= 400) return 'warn';
  if (status >= 300) return 'info';
  return 'ok';
}

/** Says how a request ended, in a word or by its status. */
export function resultOf(r: RequestSummary): string {
  if (r.status) return String(r.status);
  if (r.state === 'failed') return t('request.error');
  return r.state === 'open' ? '…' : '–';
}

/** Says which tunnel a request came by, and by which of its paths if it has one for it. */
export const tunnelOf = (r: RequestSummary): string =>
  (r.tunnel_name || r.host || '') + (r.tunnel_path ?? '');

/** What a request is for: by its path, and by its host where a tunnel has all names below one. */
export const askedOf = (r: RequestSummary, publicURL = ''): string =>
  (isWildcard(publicURL) ? (r.host ?? '') : '') + (r.path ?? '/');

/** Who came: of a private tunnel the client's name, and from where. */
export function visitorOf(r: RequestSummary): string {
  return r.client ? `${r.client} ${r.visitor}` : r.visitor;
}
