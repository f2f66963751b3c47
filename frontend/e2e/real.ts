/**
 * The page against a real daemon: `npm run e2e:real`. It needs
 *   ADIT_WEB_UI       where the unconfigured daemon serves the page
 *   ADIT_AUTH_TOKEN   a token that its relay accepts
 *   ADIT_ORIGIN_PORT  a web server on 127.0.0.1 to publish
 * and goes from the first run to an answer from the public URL. The answer is
 * taken inside the browser, with every name resolved to loopback. Optional are
 *   ADIT_ORIGIN_TEXT  a text that the origin's answer holds
 *   ADIT_TUNNEL_TYPE  http (the default) or https
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { launch, violations } from './browser';

function need(name: string): string {
  const value = process.env[name];
  if (value) return value;
  console.error(`set ${name}; the head of e2e/real.ts says to what`);
  process.exit(2);
}

const ui = need('ADIT_WEB_UI');
const token = need('ADIT_AUTH_TOKEN');
const port = need('ADIT_ORIGIN_PORT');
const wanted = process.env.ADIT_ORIGIN_TEXT ?? '';
const type = (process.env.ADIT_TUNNEL_TYPE ?? 'http').toUpperCase();
const shots = new URL('../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

const problems: string[] = [];
let step = 'start';

async function drive(page: Page): Promise<string> {
  step = 'first run';
  await page.goto(ui);
  await page.getByLabel('Auth token').fill(token);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.getByText(/Nothing on this machine is public|Your tunnels are reachable/).waitFor();

  step = 'create a tunnel';
  await page.getByRole('link', { name: 'Tunnels' }).click();
  await page.getByRole('button', { name: 'New tunnel' }).first().click();
  await page.getByRole('radio', { name: type, exact: true }).check();
  await page.getByLabel('Local port').fill(port);
  await page.getByLabel('Name').fill('from-the-page');
  await page.getByRole('button', { name: 'Create' }).click();
  const row = page.locator('[data-tunnel]', { hasText: 'from-the-page' });
  await row.getByText('Running').waitFor();
  const url = await row.getByRole('link').first().getAttribute('href');
  assert.ok(url, 'the tunnel has no public URL');
  assert.deepEqual(await violations(page), []);
  await page.screenshot({ path: `${shots}real-tunnels.png` });
  return url;
}

async function visit(page: Page, url: string): Promise<void> {
  step = `visit ${url}`;
  const visitor = await page.context().newPage();
  const answer = await visitor.goto(url);
  assert.equal(answer?.status(), 200);
  assert.ok((await answer.text()).includes(wanted), 'the answer is not the origin’s');
  await visitor.close();

  step = 'see the request in the inspector';
  await page.getByRole('link', { name: 'Inspector' }).click();
  const list = page.getByRole('listbox', { name: 'Requests, newest first' });
  await list.getByRole('option').first().click();
  await page.getByRole('region', { name: 'Details of the request' }).waitFor();
  await page.screenshot({ path: `${shots}real-inspector.png` });
}

async function remove(page: Page): Promise<void> {
  step = 'delete the tunnel';
  await page.getByRole('link', { name: 'Tunnels' }).click();
  const row = page.locator('[data-tunnel]', { hasText: 'from-the-page' });
  await row.getByRole('button', { name: /^More/ }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await row.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
  const left = await page.evaluate(async () => {
    const answer = await fetch('/api/v1/tunnels');
    return JSON.stringify(await answer.json());
  });
  assert.ok(!left.includes('from-the-page'), 'the tunnel is still there');
}

const browser = await launch(['*.localhost']);
const context = await browser.newContext({ locale: 'en', ignoreHTTPSErrors: true });
context.setDefaultTimeout(60_000);
const page = await context.newPage();
page.on('pageerror', (error) => problems.push(error.message));
page.on('console', (message) => {
  if (message.type() === 'error') problems.push(message.text());
});
try {
  const url = await drive(page);
  await visit(page, url);
  await remove(page);
  step = 'look at the console';
  assert.deepEqual(problems, []);
  console.log(`ok    first run to ${url}`);
} catch (error) {
  await page.screenshot({ path: `${shots}real-failed.png` });
  console.error(`FAIL  ${step}: ${error instanceof Error ? error.message : String(error)}`);
  console.error(problems.join('\n'));
  process.exitCode = 1;
} finally {
  await browser.close();
}
