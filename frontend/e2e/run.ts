/**
 * The page against the mock, in a real browser: `npm run e2e:mock`. Each
 * scenario has a mock of its own; nothing waits for luck, all for conditions.
 */
import { mkdirSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { launch } from './browser';
import { scenarios as keyboard } from './keyboard';
import { scenarios as leaving } from './leaving';
import { scenarios as reading } from './reading';
import { scenarios } from './scenarios';
import { scenarios as telling } from './telling';
import { tour } from './tour';

const shots = new URL('../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });
const only = process.argv.slice(2);

const browser: Browser = await launch();
const chosen = (all: Record<string, (browser: Browser) => Promise<void>>) =>
  Object.entries(all).filter(
    ([name]) => only.length === 0 || only.some((word) => name.includes(word)),
  );
let failed = 0;

async function work(queue: ReturnType<typeof chosen>): Promise<void> {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const [name, run] = next;
    const began = Date.now();
    try {
      await run(browser);
      console.log(`ok    ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed++;
      console.error(`FAIL  ${name}: ${error instanceof Error ? error.stack : String(error)}`);
    }
  }
}

// The scenarios share the browser's one clipboard, so they go one by one; the
// tour beside them is cut in two.
const stops = chosen(tour(shots));
await Promise.all([
  work(chosen({ ...scenarios, ...reading, ...keyboard, ...leaving, ...telling })),
  work(stops),
  work(stops),
]);
await browser.close();
if (failed > 0) process.exit(1);
