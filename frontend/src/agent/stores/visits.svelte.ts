import { call } from '../api/client';
import type { Invitation, List, Visit } from '../api/types';

/** Visits of private tunnels. No event tells of them, so the page asks while it shows them. */
export class VisitStore {
  /** Those that adit.toml declares, by address. */
  items = $state.raw<readonly Visit[]>([]);
  #invitations = $state.raw<readonly Invitation[]>([]);
  /** The private tunnels that let this client in and have no declared visit, by name. */
  invitations = $derived(
    this.#invitations.filter((i) => !this.items.some((v) => v.tunnel === i.tunnel)),
  );
  #asked = 0;
  #askedRelay = 0;

  async load(): Promise<void> {
    const turn = ++this.#asked;
    const { items } = await call<List<Visit>>('GET', 'visits');
    // A slow answer must not replace that of a later question.
    if (turn === this.#asked) this.items = items;
  }

  /** Asks the relay. */
  async loadInvitations(): Promise<void> {
    const turn = ++this.#askedRelay;
    const { items } = await call<List<Invitation>>('GET', 'invitations');
    if (turn === this.#askedRelay) this.#invitations = items;
  }

  /** While the relay does not answer, nothing can be visited. */
  readonly forgetInvitations = (): void => {
    this.#askedRelay++;
    this.#invitations = [];
  };
}

export const visits = new VisitStore();
