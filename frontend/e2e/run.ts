/**
 * The page against the mock, in a real browser: `npm run e2e:mock`. Each
 * scenario has a mock of its own; nothing waits for luck, all for conditions.
 */
import { mkdirSync } from 'node:fs';
import type { Browser } from 'playwright-core';
import { launch } from './browser';
import { scenarios } from './scenarios';
import { tour } from './tour';

const shots = new URL('../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });
const only = process.argv.slice(2);

const browser: Browser = await launch();
let failed = 0;
for (const [name, run] of Object.entries({ ...scenarios, ...tour(shots) })) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
  const began = Date.now();
  try {
    await run(browser);
    console.log(`ok    ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    failed++;
    console.error(`FAIL  ${name}: ${error instanceof Error ? error.stack : String(error)}`);
  }
}
await browser.close();
if (failed > 0) process.exit(1);
