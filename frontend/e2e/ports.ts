/** Several ports published at once. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { counts } from './browser';
import { focused } from './keyboard';
import { takenPort, type Mock } from './mock';
import { scenario } from './scenarios';

const create = (page: Page) => page.getByRole('button', { name: 'Create', exact: true });
const made = (mock: Mock) =>
  [...mock.tunnels.values()].filter((t) => t.id.startsWith('t_new')).map((t) => t.name);

export const scenarios = {
  'a range of ports is published, or none of it': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels/new`);
      await page.getByLabel('Local port').fill('27015');
      await counts(page.locator('#f-ports'), 0);
      await page.getByRole('radio', { name: 'UDP' }).check();
      await page.getByLabel('Public port').fill(String(takenPort - 2));
      await page.keyboard.press('Tab');
      await focused(page, '#f-ports');
      await page.keyboard.type('900');
      await page.locator('#f-ports-error', { hasText: 'from 1 to 256' }).waitFor();
      await page.getByLabel('Number of ports').fill('3');
      await page.getByLabel('Name').fill('game');
      await create(page).click();
      // The third is taken, so the first two are given back.
      await page.locator('#f-remote_port-error', { hasText: 'Port 27017: ' }).waitFor();
      await focused(page, '#f-remote_port');
      assert.deepEqual(made(mock), []);
      await page.getByLabel('Public port').fill(String(takenPort + 1));
      await page.getByLabel('Public port').press('Enter');
      await page.getByText('3 ports are published, the first at udp://').waitFor();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(made(mock), ['game-27015', 'game-27016', 'game-27017']);
      // What there is has one port.
      await page.goto(`${mock.url}/#/tunnels/t_0005`);
      await page.locator('#f-remote_port').waitFor();
      await counts(page.locator('#f-ports'), 0);
    },
    { allow: /status of 400/ },
  ),
};
