/** The program is updated while its page is open. */
import type { Page } from 'playwright-core';
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
};
