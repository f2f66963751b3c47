import { call } from '../api/client';
import type { Check, List } from '../api/types';

/** The last run of the checks. */
export class DiagnosticsStore {
  items = $state.raw<readonly Check[]>([]);
  ranAt = $state<number>();
  running = $state(false);

  async run(): Promise<void> {
    if (this.running) return;
    this.running = true;
    try {
      this.items = (await call<List<Check>>('POST', 'diagnostics', { harmless: true })).items;
      this.ranAt = Date.now();
    } finally {
      this.running = false;
    }
  }
}

export const diagnostics = new DiagnosticsStore();
