import { call } from '../api/client';
import type { List, Visit } from '../api/types';

/** The visits that adit.toml declares. No event tells of them, so the page asks while it shows them. */
export class VisitStore {
  /** By address. */
  items = $state.raw<readonly Visit[]>([]);
  #asked = 0;

  async load(): Promise<void> {
    const turn = ++this.#asked;
    const { items } = await call<List<Visit>>('GET', 'visits');
    // A slow answer must not replace that of a later question.
    if (turn === this.#asked) this.items = items;
  }
}

export const visits = new VisitStore();
