/** How an operator finds why a client's tunnel does not answer. */
import { counts } from '../browser';
import { button, menu, row, scenario, text } from './scenarios';

export const scenarios = {
  'a client leads to its endpoints and its visits': scenario(async (page, mock) => {
    const nas = 'c_workshop-nas0k2m4';
    // A connection names no host, method or path.
    const plain = { host: undefined, method: undefined, path: undefined, status: undefined };
    mock.visit({ ...plain, id: 'a_ssh', client_id: nas, endpoint_id: 'e_4', key: 't_ssh' });
    mock.visit({ ...plain, id: 'a_gone', client_id: nas, endpoint_id: 'e_gone', key: 't_gone' });
    await page.goto(`${mock.url}/#/clients`);
    await row(page, 'workshop-nas').getByRole('link', { name: 'show the endpoints of' }).click();
    await row(page, 'e_4').waitFor();
    await counts(row(page, 'e_1'), 0);
    await page.goto(`${mock.url}/#/clients/workshop-nas`);
    await page.locator('dialog').getByRole('link', { name: 'Show its visits' }).click();
    await text(page, 'Only visits to workshop-nas are shown.').waitFor();
    await row(page, 'a_ssh').getByText('tcp://relay.example:20001').waitFor();
    // Of what is served no more, the agent's own name is left.
    await row(page, 'a_gone').getByText('t_gone').waitFor();
    await counts(page.locator('[data-row^=a_]'), 2);
    await button(page, 'Show all').click();
    await text(page, 'Only visits to').waitFor({ state: 'detached' });
    await page.getByText('shop.relay.example').first().waitFor();
    await page.goto(`${mock.url}/#/clients`);
    await menu(page, 'shop', 'Show its endpoints');
    await row(page, 'e_1').waitFor();
    await counts(row(page, 'e_3'), 0);
  }),

  'an error leads to the endpoint that it is of': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/errors`);
    await text(page, 'Nothing listens at the local address').waitFor();
    await page.getByText('t_demo').waitFor();
    await page.getByRole('link', { name: 'https://shop.relay.example' }).click();
    await row(page, 'e_1').waitFor();
    await counts(row(page, 'e_4'), 0);
  }),

  'clients are searched by their state': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/clients`);
    await page.getByLabel('State').selectOption('Away');
    await row(page, 'old-laptop').waitFor();
    await counts(row(page, 'shop'), 0);
    await page.waitForURL(/state=away/);
    await page.reload(); // a link of what is looked for has it
    await row(page, 'old-laptop').waitFor();
    await page.getByPlaceholder('Search clients').fill('shop');
    await button(page, 'Reset').click();
    await row(page, 'shop').waitFor();
  }),

  'domains and policies are searched': scenario(async (page, mock) => {
    for (const [where, word, one, other] of [
      ['domains', 'OLD-lap', 'demo.example.org', 'shop.relay.example'],
      ['policies', 'tcp', 'tcp.20001', 'shop.relay.example'],
    ] as const) {
      await page.goto(`${mock.url}/#/${where}`);
      await row(page, other).waitFor();
      await page.getByPlaceholder(`Search ${where}`).fill(word);
      await counts(row(page, other), 0);
      await row(page, one).waitFor();
      // A link of what is looked for has it.
      await page.reload();
      await row(page, one).waitFor();
      await page.getByPlaceholder(`Search ${where}`).fill('nothing of the kind');
      await button(page, 'Reset').click();
      await row(page, other).waitFor();
    }
  }),
};
