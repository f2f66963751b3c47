/** Tunnels without a public address, and visits of other clients' ones. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { counts, has, until } from './browser';
import { someVisits } from './fixtures';
import { focused } from './keyboard';
import type { Mock } from './mock';
import { scenario } from './scenarios';

const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: true }).first();
const gone = (page: Page) => page.locator('dialog').waitFor({ state: 'detached' });
const made = (mock: Mock) => [...mock.tunnels.values()].find((t) => t.domain === 'ssh');
const clipboard = (page: Page) => page.evaluate(() => navigator.clipboard.readText());

export const scenarios = {
  'a private tunnel is made, shown and visited': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await button(page, 'New tunnel').click();
    await page.getByLabel('Local port').fill('22');
    // Only plain TCP and UDP can be private, and there it is asked for at once.
    await counts(page.locator('#f-visitors'), 0);
    await page.getByRole('radio', { name: 'TCP' }).check();
    await page.locator('#f-remote_port').fill('20022');
    await page.getByLabel('Mode').selectOption({ label: 'Private' });
    await page.getByText('No public address').waitFor();
    await counts(page.locator('#f-remote_port'), 0);
    await page.getByLabel('Private name').fill('ssh.lan');
    await page.locator('#f-domain-error', { hasText: 'without a dot' }).waitFor();
    await page.getByLabel('Visitors').fill('laptop\nann@example.com');
    await button(page, 'Create').click();
    await page.locator('#f-visitors-error').waitFor();
    assert.ok(!mock.seen.includes('POST tunnels'), 'a mistake was sent');
    await page.getByLabel('Private name').fill('ssh');
    await page.getByLabel('Visitors').fill('laptop\noffice-pc');
    await button(page, 'Create').click();
    await page.getByText('adit visit workshop-nas/ssh 2222').waitFor();
    await gone(page);
    assert.deepEqual(
      [made(mock)?.type, made(mock)?.mode, made(mock)?.visitors],
      ['tcp', 'private', ['laptop', 'office-pc']],
    );
    const row = page.locator(`[data-tunnel=${made(mock)?.id}]`);
    await row.getByText('adit://workshop-nas/ssh').waitFor();
    await counts(row.locator('a'), 0);
    await row.getByRole('button', { name: 'Private' }).click();
    assert.match(await page.getByRole('tooltip').innerText(), /\nlaptop\noffice-pc$/);
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: 'Copy address' }).click();
    assert.equal(await clipboard(page), 'adit://workshop-nas/ssh');
    await row.getByRole('button', { name: /^More/ }).click();
    await counts(page.getByRole('menuitem', { name: 'QR code' }), 0);
    await page.getByRole('menuitem', { name: 'Copy command to visit it' }).click();
    await page.getByText('Copied: adit visit workshop-nas/ssh 2222').waitFor();
    assert.equal(await clipboard(page), 'adit visit workshop-nas/ssh 2222');
    // A link that asks for its code gets none.
    await page.goto(`${mock.url}/#/tunnels/qr:${made(mock)?.id}`);
    await row.waitFor();
    await counts(page.locator('dialog'), 0);
  }),

  'a private tunnel is changed by the keyboard, and made public': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels/t_0008`);
    await page.locator('dialog').getByText('adit visit workshop-nas/desktop 3389').waitFor();
    await has(page.getByLabel('Private name'), 'desktop');
    await has(page.getByLabel('Visitors'), 'laptop\noffice-pc');
    await page.getByLabel('Mode').focus();
    await page.keyboard.press('Tab');
    await focused(page, '#f-domain');
    await page.keyboard.press('Tab');
    await focused(page, '#f-visitors');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('*');
    await button(page, 'Save').press('Enter');
    await gone(page);
    assert.deepEqual(mock.changes, [{ visitors: ['*'] }]);
    await page.locator('[data-tunnel=t_0008]').getByRole('button', { name: 'Private' }).click();
    await page.getByRole('tooltip', { name: 'Every client of the relay may visit it.' }).waitFor();
    await page.goto(`${mock.url}/#/tunnels/t_0008`);
    await page.getByLabel('Mode').selectOption({ label: 'Standard' });
    await counts(page.locator('#f-visitors'), 0);
    await counts(page.locator('#how-to-visit'), 0);
    await page.locator('#f-remote_port').fill('20089');
    await button(page, 'Save').click();
    await gone(page);
    assert.deepEqual(mock.changes[1], { mode: 'standard', remote_port: 20_089 });
    // UDP can be private as TCP can, and other types cannot.
    await button(page, 'New tunnel').click();
    await page.getByRole('radio', { name: 'UDP' }).check();
    await counts(page.locator('#f-mode option'), 3);
    await page.getByRole('radio', { name: 'TLS' }).check();
    await page.getByText('More options').click();
    await counts(page.locator('#f-mode option'), 2);
  }),

  'declared visits are listed, and followed': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await until('the visits', () => mock.seen.includes('GET visits'));
      await counts(page.locator('[data-visit]'), 0);
      mock.visits = someVisits();
      // What the session is, they may follow.
      mock.setStatus({ state: 'reconnecting', connected: false });
      const ssh = page.locator('[data-visit="127.0.0.1:2222"]');
      await ssh.getByText('127.0.0.1:2222 → studio/ssh').waitFor();
      await ssh.getByText('Failed').waitFor();
      await ssh.getByText('address already in use').waitFor();
      const files = page.locator('[data-visit="127.0.0.1:4450"]');
      await files.getByText('Listening').waitFor();
      await files.getByText('1 open').waitFor();
      await files.getByRole('button', { name: 'Copy address' }).click();
      assert.equal(await clipboard(page), '127.0.0.1:4450');
      // And without a word from the daemon.
      mock.visits = mock.visits.map((v) => ({
        ...v,
        state: 'listening',
        error: '',
        connections: { open: 7, total: 9 },
      }));
      await ssh.getByText('7 open').waitFor();
      await ssh.getByText('Listening').waitFor();
      mock.visits = mock.visits.slice(0, 1);
      await ssh.waitFor({ state: 'detached' });
      // What is declared is not said twice.
      mock.invitations = [
        { tunnel: 'studio/files', type: 'tcp' },
        { tunnel: 'studio/ssh', type: 'udp' },
      ];
      mock.setStatus({ state: 'connected', connected: true });
      await counts(page.locator('[data-invitation]'), 1);
      const invited = page.locator('[data-invitation="studio/ssh"]');
      await invited.getByText('UDP').waitFor();
      await invited.getByText('adit visit studio/ssh').waitFor();
      await invited.getByRole('button', { name: 'Copy command' }).click();
      assert.equal(await clipboard(page), 'adit visit studio/ssh');
      // While the relay is away nothing can be visited.
      mock.setStatus({ state: 'reconnecting', connected: false });
      await invited.waitFor({ state: 'detached' });
      mock.visits = [];
      await files.waitFor({ state: 'detached' });
      await counts(page.getByRole('heading', { name: 'Visits of private tunnels' }), 0);
      // The page may ask who invites a moment before it hears that the relay is away.
    },
    { allow: /status of 503/ },
  ),
};
