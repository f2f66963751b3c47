/** The program is updated while its page is open. */
import type { Page } from 'playwright-core';
import { has } from './browser';
import { unconfigured } from './mock';
import { scenario } from './scenarios';

/** From now on the page is served as a newer version would, by another name for its code. */
export async function update(page: Page): Promise<void> {
  await page.route(
    (url) => url.pathname === '/',
    async (route) => {
      const answer = await route.fetch();
      const body = (await answer.text()).replace(/(index-[^"]+\.js)/, '$1?newer');
      await route.fulfill({ response: answer, body });
    },
  );
}

/** Waits until the page runs the newer code. */
export const updated = (page: Page) =>
  page.locator('script[src$="?newer"]').waitFor({ state: 'attached' });

export const scenarios = {
  'a daemon that was updated brings its page': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels?q=shop`);
      await page.locator('[data-tunnel=t_0001]').waitFor();
      await mock.stop();
      await update(page);
      mock.renew();
      await mock.start();
      await updated(page);
      await page.locator('[data-tunnel=t_0001]').waitFor();
      await page.getByText('adit was updated.').waitFor({ state: 'detached' });
    },
    { allow: /ERR_|net::/ },
  ),

  'a daemon that was updated takes nothing that is typed': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels/new`);
      await page.getByLabel('Local port').fill('5000');
      await mock.stop();
      await update(page);
      mock.renew();
      await mock.start();
      await page.getByText('adit was updated.').waitFor();
      await page.getByRole('button', { name: 'Create', exact: true }).click();
      await page.getByText('Published at').waitFor();
      await page.getByRole('button', { name: 'Reload', exact: true }).click();
      await updated(page);
    },
    { allow: /ERR_|net::/ },
  ),

  'a daemon that was updated takes no token that is typed': scenario(
    async (page, mock) => {
      await page.getByLabel('Auth token').fill('adit_half');
      await page.getByRole('heading', { name: 'Connect this machine' }).click();
      await mock.stop();
      await update(page);
      mock.renew();
      const asked = page.waitForResponse((answer) => new URL(answer.url()).pathname === '/');
      await mock.start();
      await (await asked).finished();
      // What would come of it has come by the next picture.
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
      await has(page.getByLabel('Auth token'), 'adit_half');
    },
    {
      prepare: (mock) => (mock.status = { ...mock.status, ...unconfigured }),
      allow: /ERR_|net::/,
    },
  ),
};
