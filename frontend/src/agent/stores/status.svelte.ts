import { call, control } from '../api/client';
import type { AuthStatus, Status } from '../api/types';

/** One second's worth of traffic. */
export interface Sample {
  at: number;
  in: number;
  out: number;
}

const keep = 180;

/** The agent as a whole, and its throughput over the last three minutes. */
export class StatusStore {
  current = $state.raw<Status>();
  auth = $state.raw<AuthStatus>();
  samples = $state.raw<readonly Sample[]>([]);
  #last: { at: number; in: number; out: number; daemon: string } | undefined;

  apply(status: Status): void {
    const before = this.current;
    this.current = status;
    // The token's hint and identifier are not part of the status.
    if (
      before &&
      (before.configured !== status.configured ||
        before.state !== status.state ||
        before.relay !== status.relay)
    )
      void this.loadAuth();
  }

  /**
   * Takes a sample; called once a second while the daemon is followed. Where that was
   * longer ago there is a sample for each second since.
   */
  sample(now = Date.now()): void {
    const status = this.current;
    if (!status) return;
    const { in: inward, out } = status.bytes;
    const last = this.#last;
    this.#last = { at: now, in: inward, out, daemon: status.started_at };
    // A new daemon counts from zero.
    if (!last || last.daemon !== status.started_at || now <= last.at) return;
    const seconds = (now - last.at) / 1000;
    const next = {
      in: Math.max(0, inward - last.in) / seconds,
      out: Math.max(0, out - last.out) / seconds,
    };
    const length = Math.min(keep, Math.max(1, Math.round(seconds)));
    const since = Array.from({ length }, (_, i) => ({
      at: now - (length - 1 - i) * 1000,
      ...next,
    }));
    this.samples = [...this.samples, ...since].slice(-keep);
  }

  async load(signal?: AbortSignal): Promise<void> {
    this.apply(await call<Status>('GET', 'status', { signal }));
  }

  async loadAuth(signal?: AbortSignal): Promise<void> {
    try {
      this.auth = await call<AuthStatus>('GET', 'auth/status', { signal });
    } catch {
      // The link's own state already says what is wrong.
    }
  }

  async configure(token: string): Promise<void> {
    this.auth = await control<AuthStatus>('POST', 'auth/configure', {
      body: { auth_token: token },
    });
    await this.load();
  }

  async signOut(): Promise<void> {
    await control('DELETE', 'auth');
    await this.load();
  }

  async pause(): Promise<void> {
    this.apply(await call<Status>('POST', 'pause'));
  }

  async resume(): Promise<void> {
    this.apply(await call<Status>('POST', 'resume'));
  }

  async reconnect(): Promise<void> {
    this.apply(await call<Status>('POST', 'reconnect'));
  }
}

export const status = new StatusStore();
