import { call, Problem, type Options } from '../../shared/api/client';

export * from '../../shared/api/client';

// How long to wait before trying a busy control plane again.
const patience = [150, 300, 600, 1200, 2400];

let turn: Promise<unknown> = Promise.resolve();

/**
 * Sends a control-plane request. The daemon makes one such change at a time
 * and answers 409 meanwhile: this page's own wait for each other, and one that
 * meets somebody else's is tried again for a few seconds.
 */
export function control<T>(method: string, path: string, o: Options = {}): Promise<T> {
  return inTurn(() => call<T>(method, path, o));
}

/** Is control for a request of another kind. */
export function inTurn<T>(attempt: () => Promise<T>): Promise<T> {
  const mine = turn.then(() => retryBusy(attempt));
  turn = mine.catch(() => undefined);
  return mine;
}

export async function retryBusy<T>(
  attempt: () => Promise<T>,
  waits: readonly number[] = patience,
): Promise<T> {
  for (const wait of waits) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== 'control_busy') throw error;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
  return attempt();
}
