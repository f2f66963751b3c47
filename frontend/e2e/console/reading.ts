/** How the console is read. */
import assert from 'node:assert/strict';
import { cutOff } from '../browser';
import { asksBeforeReload } from '../leaving';
import { button, menu, row, scenario, text } from './scenarios';

export const scenarios = {
  'times say their zone': scenario(
    async (page, mock) => {
      for (const one of ['access', 'errors', 'domains', 'audit']) {
        await page.goto(`${mock.url}/#/${one}`);
        await text(page, 'Times are in Australia/Darwin (UTC+9:30).').waitFor();
      }
      await page.goto(`${mock.url}/#/policies`);
      const title = await row(page, 'tcp.20001')
        .getByRole('button', { name: 'ago' })
        .getAttribute('aria-description');
      assert.match(title ?? '', / UTC\+9:30$/);
      await page.goto(`${mock.url}/#/clients`);
      await menu(page, 'shop', 'Change permissions and limits');
      await page.locator('#s-expires-hint', { hasText: 'Australia/Darwin' }).waitFor();
    },
    { zone: 'Australia/Darwin' },
  ),

  'a secret that is shown once is not lost by a reload': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/clients`);
    await menu(page, 'shop', 'Rotate token');
    await page.locator('dialog [type=submit]').click();
    await text(page, 'This is the only time').waitFor();
    await asksBeforeReload(page);
    await button(page, 'Done').click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.reload();
  }),

  'what agents report is in the reader’s language': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/errors`);
      await text(page, '本地地址 127.0.0.1:3000 上没有服务在监听').waitFor();
    },
    { lang: 'zh-CN' },
  ),

  'a date that is half typed is not taken for none': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/settings`);
    // By the keyboard: the lists above may come, and push the button from under the pointer.
    await button(page, 'Add API token').press('Enter');
    await page.getByLabel('Name').fill('ci');
    await page.getByLabel('Expires').focus();
    await page.keyboard.type('0102');
    await page.locator('dialog').getByRole('button', { name: 'Add API token' }).click();
    await page.locator('#t-expires:focus').waitFor();
    assert.ok(!mock.seen.includes('POST tokens'));
    await page.getByLabel('Expires').fill('2031-02-03T04:05');
    await page.locator('dialog').getByRole('button', { name: 'Add API token' }).click();
    await button(page, 'Done').waitFor();
    assert.ok(mock.seen.includes('POST tokens'));
  }),

  'what is long leaves the rest in sight': scenario(async (page, mock) => {
    const [client] = mock.clients;
    assert.ok(client?.seen);
    // As Go calls what is built without a tag.
    client.seen.version = 'v1.4.1-0.20260504102030-0123456789ab+dirty';
    mock.session = { ...mock.session, account: 'a'.repeat(64) };
    mock.visit({ method: 'M'.repeat(60), path: '/what' });
    await page.goto(`${mock.url}/?again#/clients`);
    await row(page, 'shop').waitFor();
    const out = await button(page, 'Sign out').boundingBox();
    assert.ok(out && out.x + out.width < 244, `the way out is at ${out?.x}`);
    for (const width of [1000, 1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      await page.goto(`${mock.url}/#/clients`);
      await row(page, 'shop').waitFor();
      assert.deepEqual(await cutOff(page), [], `clients are cut off at ${width}`);
      await page.goto(`${mock.url}/#/access`);
      const method = page.getByText(/^M+$/).first();
      await method.waitFor();
      assert.deepEqual(await cutOff(page), [], `visits are cut off at ${width}`);
      const [one, other] = [await method.boundingBox(), await text(page, '/what').boundingBox()];
      assert.ok(one && other && one.x + one.width <= other.x, `they overlap at ${width}`);
    }
  }),
};
