/** Runs scenarios in a browser, and says how each ended. */
import type { Browser } from 'playwright-core';

export type Run = (browser: Browser) => Promise<void>;
export type Runs = Record<string, Run>;

/**
 * Runs what the command line names, or all of it: each lane in order, the lanes
 * beside each other. The process ends with 1 if a run has failed.
 */
export async function runAll(browser: Browser, lanes: Runs[], label = ''): Promise<void> {
  const only = process.argv.slice(2);
  const lane = async (runs: Runs) => {
    for (const [name, run] of Object.entries(runs)) {
      if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
      const began = Date.now();
      try {
        await run(browser);
        console.log(`ok    ${label}${name} (${Date.now() - began} ms)`);
      } catch (error) {
        process.exitCode = 1;
        const what = error instanceof Error ? error.stack : String(error);
        console.error(`FAIL  ${label}${name}: ${what}`);
      }
    }
  };
  await Promise.all(lanes.map(lane));
  await browser.close();
}

/** Returns the runs of a lane dealt out to so many, as cards are. */
export function dealt(runs: Runs, hands: number): Runs[] {
  const all = Object.entries(runs);
  return Array.from({ length: hands }, (_, hand) =>
    Object.fromEntries(all.filter((_, i) => i % hands === hand)),
  );
}

/** Returns the runs of these names. */
export function pick(runs: Runs, ...names: string[]): Runs {
  const missing = names.find((name) => !runs[name]);
  if (missing) throw new Error(`there is no scenario ${missing}`);
  return Object.fromEntries(Object.entries(runs).filter(([name]) => names.includes(name)));
}
