import { call } from '../api/client';
import type { List, LogEntry, LogLevel } from '../api/types';

const most = 5000;

export const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** A line with a number of its own, since a log line has no id. */
export interface LogLine extends LogEntry {
  n: number;
}

/** The daemon's own log, oldest first. */
export class LogStore {
  items = $state.raw<readonly LogLine[]>([]);
  loaded = $state(false);
  /** Why not all of it is here. */
  problem = $state.raw<unknown>();
  #next = 0;

  #number(entries: readonly LogEntry[]): LogLine[] {
    return entries.map((entry) => ({ ...entry, n: this.#next++ }));
  }

  async load(): Promise<void> {
    const live: LogEntry[] = [];
    this.#live = live;
    try {
      const { items } = await call<List<LogEntry>>('GET', 'logs?level=debug&limit=1000');
      if (this.#live !== live) return;
      // A line may be in the answer and in the stream.
      const have = new Set(items.slice(-200).map(plain));
      this.items = this.#number([...items, ...live.filter((line) => !have.has(plain(line)))]);
      this.#have = have;
      this.loaded = true;
      this.problem = undefined;
    } catch (error) {
      if (this.#live === live) this.problem = error;
      throw error;
    } finally {
      if (this.#live === live) this.#live = undefined;
    }
  }

  // What the stream brings while the list is loaded.
  #live: LogEntry[] | undefined;
  #have = new Set<string>();

  apply(batch: readonly LogEntry[]): void {
    this.#live?.push(...batch);
    const fresh = batch.filter((line) => !this.#have.has(plain(line)));
    if (fresh.length > 0) this.items = [...this.items, ...this.#number(fresh)].slice(-most);
  }

  /** Returns the lines of at least this level that hold the text. */
  filtered(level: LogLevel, text: string): LogLine[] {
    const lowest = levels.indexOf(level);
    const wanted = text.toLowerCase();
    return this.items.filter(
      (line) =>
        levels.indexOf(line.level) >= lowest &&
        (!wanted || plain(line).toLowerCase().includes(wanted)),
    );
  }
}

/** Returns the line as text, as it would stand in a file. */
export function plain(line: LogEntry): string {
  const attrs = Object.entries(line.fields ?? {}).map(([k, v]) => ` ${k}=${v}`);
  return `${line.time} ${line.level.toUpperCase()} ${line.message}${attrs.join('')}`;
}

export const logs = new LogStore();
