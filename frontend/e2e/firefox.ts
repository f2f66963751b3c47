/**
 * Both applications against the mocks in Firefox: `npm run e2e:firefox`. Here is
 * what its engine has a part in; `ADIT_BROWSER=firefox npx tsx e2e/run.ts` tries
 * all, of which some ask for what Playwright cannot do in Firefox.
 */
import { mkdirSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { launch } from './browser';
import { scenarios as console_ } from './console/scenarios';
import { tour as consoleTour } from './console/tour';
import { scenarios as keyboard } from './keyboard';
import { scenarios } from './scenarios';
import { scenarios as telling } from './telling';
import { tour } from './tour';

const shots = new URL('../screenshots/firefox-', import.meta.url).pathname;
mkdirSync(new URL('../screenshots/', import.meta.url), { recursive: true });

type Run = (browser: Browser) => Promise<void>;
const one = (all: Record<string, Run>, name: string): [string, Run] => {
  const run = all[name];
  if (!run) throw new Error(`there is no scenario ${name}`);
  return [name, run];
};
// The scenarios share the clipboard and the focus, so they go one by one.
const doing: [string, Run][] = [
  one(scenarios, 'first run, with every way to go wrong'),
  one(scenarios, 'create a tunnel, checked as one types'),
  one(scenarios, 'delete a tunnel, and think again'),
  one(scenarios, 'QR code, copy, and back to the keyboard'),
  one(scenarios, 'inspect, replay, edit and replay'),
  one(scenarios, 'the daemon is killed, and comes back'),
  one(scenarios, 'the keyboard alone'),
  one(keyboard, 'the keyboard keeps its place among tunnels'),
  one(telling, 'an error that is cut short is told whole to the keyboard'),
  one(console_, 'sign in with a second factor, and out again'),
  one(console_, 'a policy, its faults and its explanation'),
  one(console_, 'visits show as they happen, and older ones on demand'),
];
const looking: [string, Run][] = [
  one(tour(shots), 'pages wide-light-en'),
  one(tour(shots), 'pages phone-dark-zh-CN'),
  one(consoleTour(shots), 'console wide-light-en'),
  one(consoleTour(shots), 'console phone-dark-zh-CN'),
];

const browser = await launch();
const only = process.argv.slice(2);
async function work(queue: [string, Run][]): Promise<void> {
  for (const [name, run] of queue) {
    if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
    const began = Date.now();
    try {
      await run(browser);
      console.log(`ok    firefox: ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      process.exitCode = 1;
      console.error(
        `FAIL  firefox: ${name}: ${error instanceof Error ? error.stack : String(error)}`,
      );
    }
  }
}
await Promise.all([work(doing), work(looking)]);
await browser.close();
