/** A short message in the corner, with at most one thing to do about it. */
export interface Toast {
  id: number;
  kind: 'ok' | 'bad';
  text: string;
  action?: { label: string; run: () => void };
}

class Toasts {
  items = $state.raw<readonly Toast[]>([]);
  #next = 0;

  /** Shows a toast for a while; one with an action goes when that is over. */
  show(toast: Omit<Toast, 'id'>, forMs = toast.kind === 'bad' ? 9000 : 4000): void {
    const id = this.#next++;
    this.items = [...this.items.slice(-3), { ...toast, id }];
    setTimeout(() => this.drop(id), forMs);
  }

  drop(id: number): void {
    this.items = this.items.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
