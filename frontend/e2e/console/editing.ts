/** What becomes of what is typed: while others change the same, and when the session ends. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { has } from '../browser';
import { type ConsoleMock, password } from './mock';
import { button, menu, scenario, text } from './scenarios';

const save = (page: Page) =>
  page.locator('dialog[open] footer').getByRole('button', { name: 'Save' }).click();
const closed = (page: Page) => page.locator('dialog').waitFor({ state: 'detached' });

/** Ends the session as its time does, and waits until the page has found out. */
async function expire(page: Page, mock: ConsoleMock): Promise<void> {
  mock.session = { ...mock.session, signed_in: false };
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor({ timeout: 20_000 });
}

async function signIn(page: Page): Promise<void> {
  const again = page.locator('dialog', { hasText: 'Sign in again' });
  await again.getByLabel('Password').fill(password);
  await again.getByLabel('Password').press('Enter');
  await page.getByRole('heading', { name: 'Sign in again' }).waitFor({ state: 'detached' });
}

export const scenarios = {
  'two administrators change what one client may do': scenario(
    async (page, mock) => {
      const shop = () => mock.clients.find((c) => c.name === 'shop');
      await page.goto(`${mock.url}/#/clients`);
      await menu(page, 'shop', 'Change permissions and limits');
      await page.getByLabel('Number of tunnels').fill('9');
      Object.assign(shop() ?? {}, { scope: { ...shop()?.scope, ports: ['25565'] } });
      await save(page);
      const note = page.getByRole('alert').filter({ hasText: 'changed this in the meantime' });
      await note.getByText('It concerns: Ports').waitFor();
      assert.equal(shop()?.scope?.tunnels, 5);
      await button(page, 'Load theirs, keep my changes').click();
      await text(page, 'They are not saved yet').waitFor();
      await has(page.getByLabel('Ports'), '25565');
      assert.equal(await page.getByLabel('Number of tunnels').inputValue(), '9');
      await page.getByLabel('Domains', { exact: true }).fill('x y');
      await save(page);
      // What is at fault is where the keyboard is then.
      await page.locator('#s-domains:focus').waitFor();
      await page.getByLabel('Domains', { exact: true }).fill('shop');
      await save(page);
      await closed(page);
      assert.deepEqual(shop()?.scope?.ports, ['25565']);
      assert.equal(shop()?.scope?.tunnels, 9);
      assert.deepEqual(shop()?.scope?.domains, ['shop']);
    },
    { allow: /status of 4(12|00)/ },
  ),

  'two administrators change one sink': scenario(
    async (page, mock) => {
      const siem = () => mock.sinks.find((s) => s.name === 'siem');
      const theirs = 'https://siem.example.com/theirs';
      await page.goto(`${mock.url}/#/settings`);
      await button(page, 'Add sink').click();
      await page.getByLabel('Name', { exact: true }).fill('siem');
      await page.locator('dialog footer').getByRole('button', { name: 'Add sink' }).click();
      await page.locator('#k-name-error', { hasText: 'already' }).waitFor();
      await page.keyboard.press('Escape');
      await closed(page);
      assert.equal(siem()?.url, 'https://siem.example.com/adit');

      await menu(page, 'siem', 'Edit');
      await page.getByLabel('Only refused ones').check();
      mock.setSink('siem', { type: 'webhook', url: theirs, events: ['access', 'audit'] });
      await save(page);
      await text(page, 'changed this in the meantime').waitFor();
      assert.equal(siem()?.url, theirs);
      await button(page, 'Load theirs, keep my changes').click();
      await has(page.getByLabel('URL', { exact: true }), theirs);
      await save(page);
      await closed(page);
      assert.equal(siem()?.url, theirs);
      assert.equal(siem()?.refused_only, true);

      await menu(page, 'siem', 'Edit');
      await page.getByLabel('Audit entries').uncheck();
      mock.sinks = [];
      await save(page);
      await text(page, 'deleted this in the meantime').waitFor();
      await button(page, 'Keep mine').click();
      await save(page);
      await closed(page);
      assert.deepEqual(siem()?.events, ['access']);

      await menu(page, 'siem', 'Edit');
      await page.getByLabel('Audit entries').check();
      mock.sinks = [];
      await save(page);
      await button(page, 'Discard mine').click();
      await closed(page);
      await text(page, 'No sinks').waitFor();
    },
    { allow: /status of 4(12|04)/ },
  ),

  'what is typed waits for who signs in again': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      await menu(page, 'shop', 'Change permissions and limits');
      await page.getByLabel('Number of tunnels').fill('9');
      await expire(page, mock);
      // The keyboard is where one goes on, and does not reach what is below.
      await page.locator('#password:focus').waitFor();
      for (const key of ['Escape', 'Escape']) await page.keyboard.press(key);
      await page.getByRole('heading', { name: 'Sign in again' }).waitFor();
      assert.equal(await page.locator('#name').inputValue(), 'ann');
      await page.locator('#password').fill('wrong');
      await page.locator('#password').press('Enter');
      await text(page, 'Wrong name or password').waitFor();
      const asked = mock.seen.length;
      await signIn(page);
      assert.equal(await page.getByLabel('Number of tunnels').inputValue(), '9');
      await page.locator('#s-tunnels:focus').waitFor();
      await save(page);
      await closed(page);
      assert.equal(mock.clients.find((c) => c.name === 'shop')?.scope?.tunnels, 9);
      // What is shown is asked for anew at once.
      assert.ok(mock.seen.slice(asked).some((one) => one === 'GET clients'));
    },
    { allow: /status of 401/ },
  ),

  'a policy that could not be saved is saved after signing in again': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/policies/shop.relay.example`);
      await page.getByLabel('Refused addresses').fill('203.0.113.7');
      mock.session = { ...mock.session, signed_in: false };
      await button(page, 'Save policy').click();
      await signIn(page);
      assert.match(page.url(), /#\/policies\/shop\.relay\.example$/);
      assert.equal(await page.getByLabel('Refused addresses').inputValue(), '203.0.113.7');
      await text(page, 'this was not done').waitFor();
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      const saved = mock.policies.find((p) => p.target === 'shop.relay.example')?.policy;
      assert.deepEqual(saved?.deny, ['203.0.113.7']);
      assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage })), '{}');
    },
    { allow: /status of 401/ },
  ),

  'what is typed is nobody else’s, and gone after signing out': scenario(
    async (page, mock) => {
      const deny = page.getByLabel('Refused addresses');
      const before = '192.0.2.0/24\n198.51.100.9';
      await page.goto(`${mock.url}/#/policies/shop.relay.example`);
      await deny.fill('203.0.113.7');
      await expire(page, mock);
      mock.session = { ...mock.session, account: 'bob' };
      await signIn(page);
      await page.locator('.days button').first().waitFor();
      assert.equal(await deny.inputValue(), before);
      await deny.fill('203.0.113.8');
      await button(page, 'Sign out').click();
      await button(page, 'Leave').click();
      await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor();
      await closed(page);
      await page.getByLabel('Name').fill('bob');
      await page.getByLabel('Password').fill(password);
      await page.getByLabel('Password').press('Enter');
      await page.locator('.days button').first().waitFor();
      assert.equal(await deny.inputValue(), before);
    },
    { allow: /status of 401/ },
  ),
};
