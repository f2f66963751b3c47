/** What is typed and not saved is not lost without a question. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { scenario } from './scenarios';

const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first();

/** Reloads a page that asks before it goes, and stays. */
export async function asksBeforeReload(page: Page): Promise<void> {
  const asked = page.waitForEvent('dialog');
  void page.reload().catch(() => undefined);
  const dialog = await asked;
  assert.equal(dialog.type(), 'beforeunload');
  await dialog.dismiss();
}

export const scenarios = {
  'a reload asks before it drops a new tunnel': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await button(page, 'New tunnel').click();
    // Nothing was typed yet.
    await page.reload();
    await page.getByLabel('Local port').click();
    await page.keyboard.type('5000');
    await asksBeforeReload(page);
    assert.equal(await page.getByLabel('Local port').inputValue(), '5000');
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.reload();
  }),

  'who is let in is not dropped without a question': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await page.locator('[data-tunnel=t_0001]').waitFor();
    await button(page, 'More for shop').click();
    await page.getByRole('menuitem', { name: 'Who may visit' }).click();
    const deny = page.getByLabel('Refused addresses');
    const before = await deny.inputValue();
    await deny.click();
    await page.keyboard.type('203.0.113.7');
    const stays = async () => {
      await page.getByRole('heading', { name: 'Leave without saving?' }).waitFor();
      await page.locator('dialog').last().getByRole('button', { name: 'Cancel' }).click();
      await page.locator('dialog').nth(1).waitFor({ state: 'detached' });
      assert.match(await deny.inputValue(), /203\.0\.113\.7/);
    };
    await asksBeforeReload(page);
    await page.keyboard.press('Escape');
    await stays();
    await page.goBack();
    await stays();
    await button(page, 'Cancel').click();
    await page.locator('dialog').last().getByRole('button', { name: 'Leave' }).click();
    await page.locator('dialog').first().waitFor({ state: 'detached' });
    // What was taken back is no change.
    await page.goForward();
    await deny.fill('203.0.113.7');
    await deny.fill(before);
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.equal(mock.seen.filter((asked) => asked.startsWith('PUT')).length, 0);
    // What is saved is not asked about.
    await page.goForward();
    await deny.fill('203.0.113.7');
    await button(page, 'Save policy').click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.reload();
  }),

  'what others have made of a tunnel is not put aside without a word': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels/t_0001`);
      await page.getByLabel('Local port').fill('5000');
      const theirs = (change: object) =>
        fetch(`${mock.url}/api/v1/tunnels/t_0001`, {
          method: 'PATCH',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(change),
        });
      await theirs({ local_port: 4000, name: 'store' });
      await page.locator('[data-tunnel=t_0001]').getByText(':4000').waitFor();
      await button(page, 'Save').click();
      await page.getByText('Someone else has changed this in the meantime.').waitFor();
      assert.equal(mock.tunnels.get('t_0001')?.local_port, 4000);
      await button(page, 'Save').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.equal(mock.tunnels.get('t_0001')?.local_port, 5000);
      // What is not changed here stays as they have it.
      assert.equal(mock.tunnels.get('t_0001')?.name, 'store');
    },
  ),

  'what is typed stays when others delete the tunnel': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels/t_0001`);
      await page.getByLabel('Local port').fill('5000');
      await fetch(`${mock.url}/api/v1/tunnels/t_0001`, { method: 'DELETE' });
      await page.locator('[data-tunnel=t_0001]').waitFor({ state: 'detached' });
      assert.equal(await page.getByLabel('Local port').inputValue(), '5000');
      await button(page, 'Save').click();
      await page.getByText('there is no tunnel t_0001').waitFor();
      await button(page, 'Cancel').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
    },
    { allow: /status of 404/ },
  ),
};
