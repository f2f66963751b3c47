import type { Client } from '../api/types';

/** How a client is: by what it may, and whether it is there. */
export function stateOf(c: Client): 'connected' | 'away' | 'expired' | 'revoked' {
  if (c.revoked_at || c.state === 'revoked') return 'revoked';
  if (c.state === 'expired') return 'expired';
  return c.session_count > 0 || c.seen?.connected ? 'connected' : 'away';
}
