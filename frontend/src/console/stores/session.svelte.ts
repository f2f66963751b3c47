import { call, Problem, send, Unreachable } from '../../shared/api/client';
import type { SignedIn } from '../api/types';
import type { Page } from './route.svelte';
import { said } from '../i18n/relay';

/** What an account may do. Everybody who is signed in may read. */
export type Right = 'write' | 'admin';

// Pages of what a relay may be built without: asked for once, hidden if missing.
const optional: Partial<Record<Page, string>> = {
  domains: 'domains',
  nodes: 'nodes',
  audit: 'audit?limit=1',
};

// A relay that has not answered by then is away.
const patience = 10_000;

/** Who is signed in, and whether the relay answers. */
class Session {
  current = $state.raw<SignedIn>();
  /**
   * It ended without anybody signing out, as after its time: what is on the page, and
   * typed there, waits for whoever it was.
   */
  ended = $state(false);
  /** Who is signed in, or was until it ended. */
  last = $state.raw<SignedIn>();
  readonly who = $derived(this.last && `${this.last.kind ?? ''} ${this.last.account ?? ''}`);
  /** The relay did not answer the last question. */
  away = $state(false);
  refusal = $state('');
  hidden = $state.raw<ReadonlySet<Page>>(new Set());

  may(right: Right): boolean {
    const s = this.current;
    if (!s?.signed_in) return false;
    if (s.role === 'administrator' && !s.scope) return true;
    return right === 'write' && s.scope === 'write';
  }

  async load(): Promise<void> {
    try {
      await this.#set(await call<SignedIn>('GET', 'session', { patience }));
      this.away = false;
      this.refusal = '';
    } catch (error) {
      this.away = error instanceof Unreachable;
      if (error instanceof Problem) this.refusal = said(error.message);
    }
  }

  async signIn(body: Record<string, string>): Promise<void> {
    await this.#set(await call<SignedIn>('POST', 'session', { body }));
  }

  async setup(body: Record<string, string>): Promise<void> {
    await this.#set(await call<SignedIn>('POST', 'setup', { body }));
  }

  async signOut(): Promise<void> {
    await call('DELETE', 'session');
    this.last = undefined;
    if (this.current) this.current = { ...this.current, signed_in: false };
    await this.load();
  }

  /** Takes note of an error that any page met. */
  met(error: unknown): void {
    if (error instanceof Unreachable) this.away = true;
    if (error instanceof Problem) {
      this.away = false;
      if (error.status === 401 && error.code === 'unauthorized') void this.load();
    }
  }

  async #set(next: SignedIn): Promise<void> {
    const came = next.signed_in && !this.current?.signed_in;
    if (came) await this.#probe();
    if (next.signed_in) this.last = next;
    // Where nobody has an account any more, there is nobody to wait for.
    else if (next.setup_needed) this.last = undefined;
    this.ended = !next.signed_in && !!this.last;
    this.current = next;
  }

  async #probe(): Promise<void> {
    const hidden = new Set<Page>();
    await Promise.all(
      Object.entries(optional).map(async ([page, path]) => {
        try {
          await send('GET', path);
        } catch (error) {
          if (error instanceof Problem && error.status === 404) hidden.add(page as Page);
        }
      }),
    );
    this.hidden = hidden;
  }
}

export const session = new Session();
