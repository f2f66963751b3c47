/** The relay is updated while its console is open. */
import { update, updated } from '../updated';
import { row, scenario, text } from './scenarios';

export const scenarios = {
  'a relay that was updated brings its page': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients?q=shop`);
      await row(page, 'shop').waitFor();
      await mock.stop();
      await text(page, 'The relay does not answer.').waitFor();
      await update(page);
      await mock.start();
      await updated(page);
      await row(page, 'shop').waitFor();
    },
    { allow: /ERR_|net::/ },
  ),

  'a relay that was updated while nobody looked brings its page': scenario(async (page, mock) => {
    await page.clock.install();
    await page.goto(`${mock.url}/?again#/clients`);
    await row(page, 'shop').waitFor();
    await update(page);
    await page.clock.fastForward('06:00');
    await updated(page);
  }),
};
