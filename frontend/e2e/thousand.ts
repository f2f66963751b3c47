/**
 * The page against a real daemon that has a thousand tunnels: `npm run
 * e2e:thousand`. It needs ADIT_WEB_UI, where the daemon serves the page. A
 * hundred tunnels are stopped and started while the page shows them.
 */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { launch, open } from './browser';

const ui = process.env.ADIT_WEB_UI ?? '';
if (!ui) {
  console.error('set ADIT_WEB_UI');
  process.exit(2);
}
const changed = 100;
const rounds = 2;

interface Listed {
  id: string;
  name: string;
  state: string;
}

async function tunnels(): Promise<Listed[]> {
  const answer = await fetch(`${ui}/api/v1/tunnels`);
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { data: { items: Listed[] } }).data.items;
}

async function each(list: Listed[], what: 'start' | 'stop'): Promise<void> {
  for (const { id } of list) {
    const answer = await fetch(`${ui}/api/v1/tunnels/${id}/${what}`, { method: 'POST' });
    assert.equal(answer.status, 200, `${what} ${id}: ${await answer.text()}`);
  }
}

/** Watches for tasks that hold the page up; the result says how long the longest was since the last call. */
async function watchTasks(page: Page): Promise<() => Promise<number>> {
  // As text: a compiled function would call what only this process has.
  await page.evaluate(`{
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: 'longtask' });
  }`);
  return () =>
    page.evaluate(async () => {
      await new Promise((done) => setTimeout(done, 100)); // entries come after their task
      const scope = window as unknown as { longest: number };
      const { longest } = scope;
      scope.longest = 0;
      return longest;
    });
}

/** How long the page takes to draw a thousand plain rows: the least of some tries. */
function reference(page: Page): Promise<number> {
  return page.evaluate(() => {
    let least = Infinity;
    for (let i = 0; i < 5; i++) {
      const box = document.createElement('div');
      const begin = performance.now();
      for (let n = 0; n < 1000; n++) {
        const row = document.createElement('div');
        for (let cell = 0; cell < 6; cell++) {
          const span = document.createElement('span');
          span.textContent = `row ${n}, cell ${cell}`;
          row.append(span);
        }
        box.append(row);
      }
      document.body.append(box);
      void box.offsetHeight; // lays it out
      least = Math.min(least, performance.now() - begin);
      box.remove();
    }
    return least;
  });
}

/** Waits until the list has so many tunnels of a state. */
async function shows(page: Page, state: string, want: number): Promise<void> {
  await page.getByLabel('State').selectOption({ label: state });
  await page.locator(`[data-tunnel][aria-setsize="${want}"]`).first().waitFor();
}

const browser = await launch();
try {
  const { page, problems } = await open(browser, { locale: 'en' });
  const all = await tunnels();
  assert.equal(all.length, 1000);
  await page.goto(`${ui}/#/tunnels`);
  await page.locator('[data-tunnel][aria-setsize="1000"]').first().waitFor();
  const longest = await watchTasks(page);
  const plain = await reference(page);
  await longest();

  const some = all.filter((_, i) => i % (all.length / changed) === 0);
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    await each(some, 'stop');
    await shows(page, 'Stopped', changed);
    await shows(page, 'Running', all.length - changed);
    await each(some, 'start');
    await shows(page, 'Running', all.length);
    least = Math.min(least, await longest());
  }
  const last = some.at(-1);
  assert.ok(last);
  await page.getByLabel('Search tunnels').fill(last.name);
  await page.locator(`[data-tunnel="${last.id}"]`).getByText('Running').waitFor();
  assert.ok((await page.locator('[data-tunnel]').count()) < 60, 'rows out of sight are drawn');
  assert.deepEqual(problems, []);
  console.log(
    `1,000 tunnels, ${changed} stopped and started: longest task ${Math.round(least)} ms ` +
      `in the quietest of ${rounds} rounds; 1,000 plain rows take ${Math.round(plain)} ms`,
  );
  // A task of under 50 ms is not a long one and counts as none.
  assert.ok(least <= Math.max(250, 2 * plain), `a task of ${least} ms`);
} finally {
  await browser.close();
}
