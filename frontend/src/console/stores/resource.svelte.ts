import { call, Problem, whenUnsure } from '../../shared/api/client';
import { explain } from '../lib/explain';
import { session } from './session.svelte';

// A relay whose machine is gone breaks no connection, and browsers wait for minutes.
const patience = 30_000;

/** An answer of the API that a page shows, asked for again from time to time. */
export class Resource<T> {
  data = $state.raw<T>();
  error = $state('');
  /** The relay has nothing of this kind. */
  missing = $state(false);
  #path: () => string;
  #asked = 0;

  constructor(path: string | (() => string)) {
    this.#path = typeof path === 'string' ? () => path : path;
  }

  async load(): Promise<void> {
    const turn = ++this.#asked;
    try {
      const data = await call<T>('GET', this.#path(), { patience });
      // A slow answer must not replace that of a later question.
      if (turn !== this.#asked) return;
      this.data = data;
      this.error = '';
      this.missing = false;
      session.away = false;
    } catch (error) {
      if (turn !== this.#asked) return;
      session.met(error);
      this.missing = error instanceof Problem && error.status === 404;
      this.error = explain(error);
    }
  }

  /** Loads now and every so often, while the page can be seen; returns the end of it. */
  follow(everyMs = 5000): () => void {
    // Nobody is asked who would not answer; an effect comes here again after signing in.
    if (session.ended) return () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let on = true;
    const turn = async () => {
      clearTimeout(timer);
      if (!document.hidden) await this.load();
      if (on) timer = setTimeout(() => void turn(), everyMs);
    };
    const seen = () => {
      if (!document.hidden) void turn();
    };
    document.addEventListener('visibilitychange', seen);
    const certain = whenUnsure(seen);
    void turn();
    return () => {
      on = false;
      certain();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
    };
  }
}
