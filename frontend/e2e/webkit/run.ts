/** Both applications against the mocks in WebKit: `npm run e2e:webkit`. */
import { mkdirSync } from 'node:fs';
import { Webkit } from './driver';
import { scenarios } from './scenarios';
import { agentTour, consoleTour, views } from './tour';

const shots = new URL('../../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });
const only = process.argv.slice(2);

const all: Record<string, (webkit: Webkit) => Promise<void>> = {};
for (const view of views) {
  all[`pages ${view.name}`] = (webkit) => agentTour(webkit, view, shots);
  all[`console ${view.name}`] = (webkit) => consoleTour(webkit, view, shots);
}
// What saves a file leaves the window with a bar, so the tours are before it.
Object.assign(all, scenarios);

const webkit = await Webkit.launch();
try {
  for (const [name, run] of Object.entries(all)) {
    if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
    const began = Date.now();
    try {
      await run(webkit);
      console.log(`ok    webkit: ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      process.exitCode = 1;
      await webkit.screenshot(`${shots}webkit-failed.png`).catch(() => undefined);
      console.error(
        `FAIL  webkit: ${name}: ${error instanceof Error ? error.stack : String(error)}`,
      );
    }
  }
} finally {
  await webkit.close();
}
