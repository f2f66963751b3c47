import { call } from '../api/client';
import type { Check, List, SpeedReport } from '../api/types';

/** The last run of the checks. */
export class DiagnosticsStore {
  items = $state.raw<readonly Check[]>([]);
  ranAt = $state<number>();
  running = $state(false);
  speed = $state.raw<SpeedReport>();
  measuring = $state(false);

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

  async measure(): Promise<void> {
    if (this.measuring) return;
    this.measuring = true;
    try {
      this.speed = await call<SpeedReport>('POST', 'speed', { harmless: true });
    } finally {
      this.measuring = false;
    }
  }
}

export const diagnostics = new DiagnosticsStore();
