/**
 * The console against a real relay: `npm run e2e:console`. It needs
 *   ADIT_CONSOLE      where a relay that nobody has set up serves its console
 *   ADIT_SETUP_CODE   the code that its start printed
 * and goes from the first administrator to a client's token and once through all
 * pages. The token is printed, so that whoever started it can try it.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { launch, open, violations } from '../browser';

function need(name: string): string {
  const value = process.env[name];
  if (value) return value;
  console.error(`set ${name}; the head of e2e/console/real.ts says to what`);
  process.exit(2);
}

const console_ = need('ADIT_CONSOLE');
const code = need('ADIT_SETUP_CODE');
const shots = new URL('../../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

const browser = await launch();
const { page, problems } = await open(browser, {
  viewport: { width: 1280, height: 800 },
  locale: 'en',
});
let step = 'the first administrator';
try {
  await page.goto(console_);
  await page.getByLabel('Set-up code').fill(code);
  await page.getByLabel('Name').fill('ann');
  await page.getByLabel('Password').fill('a password of some length');
  await page.getByRole('button', { name: 'Create the account' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();

  step = 'add a client';
  await page.goto(`${console_}/#/clients`);
  await page.getByRole('button', { name: 'Add client' }).first().click();
  await page.getByLabel('Name', { exact: true }).fill('from-the-console');
  await page.locator('dialog footer').getByRole('button', { name: 'Add client' }).click();
  const shown = page.getByText(/adit_[A-Za-z0-9_-]{20,}/).first();
  await shown.waitFor();
  const token = /adit_[A-Za-z0-9_-]{20,}/.exec((await shown.textContent()) ?? '')?.[0];
  assert.ok(token, 'no token is shown');
  await page.getByRole('button', { name: 'Done' }).click();
  await page.locator('[data-row="from-the-console"]').waitFor();

  for (const name of [
    'overview',
    'clients',
    'endpoints',
    'domains',
    'policies',
    'access',
    'errors',
    'nodes',
    'audit',
    'settings',
  ]) {
    step = `the page ${name}`;
    await page.goto(`${console_}/#/${name}`);
    await page.locator('main h1').waitFor();
    assert.deepEqual(await violations(page), []);
    await page.screenshot({ path: `${shots}console-real-${name}.png` });
  }
  step = 'look at the browser’s console';
  assert.deepEqual(problems, []);
  console.log(token);
} catch (error) {
  await page.screenshot({ path: `${shots}console-real-failed.png` });
  console.error(`FAIL  ${step}: ${error instanceof Error ? error.message : String(error)}`);
  console.error(problems.join('\n'));
  process.exitCode = 1;
} finally {
  await browser.close();
}
