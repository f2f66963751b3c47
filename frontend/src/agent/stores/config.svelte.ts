import { call } from '../api/client';
import type { Config } from '../api/types';

/** The configuration in force; it changes with the file, so pages load it when shown. */
export class ConfigStore {
  current = $state.raw<Config>();

  async load(): Promise<void> {
    this.current = await call<Config>('GET', 'config');
  }
}

export const config = new ConfigStore();
