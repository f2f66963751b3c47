import type { Tone } from '../../shared/lib/tone';
import type { MenuItem } from '../../shared/ui/menu';
import type { Client } from '../api/types';
import { t } from '../i18n';
import { href } from '../stores/route.svelte';

/** How a client is: by what it may, and whether it is there. */
export const states = ['connected', 'away', 'expired', 'revoked'] as const;
export function stateOf(c: Client): (typeof states)[number] {
  if (c.revoked_at || c.state === 'revoked') return 'revoked';
  if (c.state === 'expired') return 'expired';
  return c.session_count > 0 || c.seen?.connected ? 'connected' : 'away';
}

export const tones: Record<(typeof states)[number], Tone> = {
  connected: 'ok',
  away: 'idle',
  expired: 'warn',
  revoked: 'bad',
};

/** Reports whether a client is one that is looked for by a text. */
export const isLike = (c: Client, text: string): boolean =>
  `${c.name} ${c.client_id} ${c.seen?.address ?? ''} ${c.seen?.hostname ?? ''}`
    .toLowerCase()
    .includes(text.trim().toLowerCase());

/** Where one looks when a client's tunnel does not answer. */
export const endpointsOf = (c: Client) => href('endpoints', '', { q: c.name });
export const accessOf = (c: Client) => href('access', '', { client_id: c.client_id });

/** The same two as items of a menu. */
export const placesOf = (c: Client): MenuItem[] => [
  {
    label: t('client.endpoints'),
    icon: 'endpoints',
    run: () => (location.hash = endpointsOf(c)),
  },
  { label: t('client.access'), icon: 'access', run: () => (location.hash = accessOf(c)) },
];
