/** A tunnel that is closed to strangers from its first visitor on. */
import assert from 'node:assert/strict';
import { counts } from './browser';
import { focused } from './keyboard';
import { scenario } from './scenarios';

export const scenarios = {
  'a tunnel asks for a password from the first on': scenario(
    async (page, mock) => {
      mock.mayGuard = false;
      await page.goto(`${mock.url}/#/tunnels/new`);
      await page.getByLabel('Local port').fill('3000');
      await page.getByLabel('Domain').fill('closed');
      await page.getByLabel('Password for visitors').fill('hush hush');
      const create = page.getByRole('button', { name: 'Create', exact: true });
      await create.click();
      await page.locator('#f-password-error', { hasText: '--own_policies' }).waitFor();
      await focused(page, '#f-password');
      mock.mayGuard = true; // the operator has
      await create.click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      const made = [...mock.tunnels.values()].find((t) => t.name === 'closed');
      assert.deepEqual(mock.policies.get(made?.id ?? ''), {
        basic_auth: [{ name: 'guest', password: 'hush hush' }],
      });
      // Neither types whose visitors cannot be asked have it, nor tunnels that are there.
      await page.goto(`${mock.url}/#/tunnels/${made?.id}`);
      await page.locator('#f-domain').waitFor();
      await counts(page.locator('#f-password'), 0);
      await page.goto(`${mock.url}/#/tunnels/new`);
      await page.getByRole('radio', { name: 'TCP' }).check();
      await page.locator('#f-remote_port').waitFor();
      await counts(page.locator('#f-password'), 0);
    },
    { allow: /status of 400/ },
  ),
};
