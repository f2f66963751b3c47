import { setBearer } from '../api/client';

const key = 'adit.bearer';

/**
 * Takes up the Bearer token that was typed in before, if this tab has one.
 * The other way in is the daemon's login link, which leaves a cookie that no
 * script can read.
 */
export function restoreBearer(): void {
  try {
    setBearer(sessionStorage.getItem(key) ?? '');
  } catch {
    // No storage: the token is asked for again.
  }
}

/** Uses a Bearer token that was typed in, until the tab is closed. */
export function useBearer(token: string): void {
  setBearer(token);
  try {
    sessionStorage.setItem(key, token);
  } catch {
    // As above.
  }
}
