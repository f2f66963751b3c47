/** A short message in the corner, with at most one thing to do about it. */
export interface Toast {
  id: number;
  kind: 'ok' | 'bad';
  text: string;
  action?: { label: string; run: () => void };
}

class Toasts {
  items = $state.raw<readonly Toast[]>([]);
  /** The modal dialogs that are open, the topmost last. */
  #dialogs = $state.raw<readonly string[]>([]);
  #next = 0;

  /** Where they are shown: in a dialog, as what is outside of it can be neither seen nor pressed. */
  get place(): string {
    return this.#dialogs.at(-1) ?? '';
  }

  /** Shows them in a dialog for as long as it is open; returns the end of it. */
  within(dialog: string): () => void {
    this.#dialogs = [...this.#dialogs, dialog];
    return () => (this.#dialogs = this.#dialogs.filter((d) => d !== dialog));
  }

  /** Shows a toast for a while; one with an action goes when that is over. Returns its id. */
  show(toast: Omit<Toast, 'id'>, forMs = toast.kind === 'bad' ? 9000 : 4000): number {
    const id = this.#next++;
    this.items = [...this.items.slice(-3), { ...toast, id }];
    setTimeout(() => this.drop(id), forMs);
    return id;
  }

  drop(id: number): void {
    this.items = this.items.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
