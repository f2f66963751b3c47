/** How the page is read: what is looked for stays, and text may be larger. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { summary, tunnel } from './fixtures';
import { scenario } from './scenarios';

/** The browser's own setting for the size of text, as a person makes it. */
async function textSize(page: Page, pixels: number): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Page.setFontSizes', {
    fontSizes: { standard: pixels, fixed: Math.round(pixels * 0.8125) },
  });
}

const pages = ['overview', 'tunnels', 'inspector', 'logs', 'diagnostics', 'settings'];

export const scenarios = {
  'what is looked for stands in the location': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await page.getByLabel('Search tunnels').fill('service');
    await page.getByText('No tunnel fits').waitFor();
    await page.getByLabel('Search tunnels').fill('s');
    await page.getByLabel('State').selectOption('stopped');
    await page.waitForURL(/#\/tunnels\?q=s&state=stopped$/);
    await page.reload();
    await page.locator('[data-tunnel=t_0006]').waitFor();
    assert.equal(await page.locator('[data-tunnel]').count(), 1);
    assert.equal(await page.getByLabel('Search tunnels').inputValue(), 's');
    // A dialog over the list leaves it as it is.
    await page.getByRole('button', { name: 'New tunnel' }).click();
    await page.keyboard.press('Escape');
    await page.waitForURL(/#\/tunnels\?q=s&state=stopped$/);

    await page.goto(`${mock.url}/#/inspector?status=5xx&tunnel=t_0001`);
    await page.locator('[role=option]').first().waitFor();
    for (const status of await page.locator('[role=option] .status').allTextContents())
      assert.match(status, /^5/);
    await page.locator('[role=option]').first().click();
    await page.waitForURL(/#\/inspector\/r_\d+\?status=5xx&tunnel=t_0001$/);

    await page.goto(`${mock.url}/#/logs?level=error`);
    await page.locator('[role=log] .line').first().waitFor();
    assert.equal(await page.locator('[role=log] .line:not(.error)').count(), 0);
  }),

  'a link shows the code for a phone': scenario(async (page, mock) => {
    // The tray has this one.
    await page.goto(`${mock.url}/#/tunnels/qr:t_0001`);
    const code = page.getByRole('dialog');
    await code.getByText('https://shop.relay.example').waitFor();
    await page.keyboard.press('Escape');
    await code.waitFor({ state: 'detached' });
    await page.waitForURL(/#\/tunnels$/);
  }),

  'a list is as tall as what is in it': scenario(async (page, mock) => {
    const height = async (card: string) => {
      const box = await page.locator(card).boundingBox();
      return box?.height ?? 0;
    };
    await page.goto(`${mock.url}/#/tunnels`);
    await page.locator('[data-tunnel=t_0007]').waitFor();
    assert.ok((await height('.list')) < 7 * 58 + 4, 'seven tunnels, and nothing below them');
    for (let n = 10; n < 310; n++) mock.setTunnel(tunnel(n), 'created');
    await page.getByText('307').waitFor();
    const tall = await height('.list');
    assert.ok(tall > 500 && tall < 720, `${tall} pixels of a window of 800`);
    await page.goto(`${mock.url}/#/logs?level=warn&q=nobody+said+this`);
    await page.locator('.empty').waitFor();
    await page.getByRole('button', { name: 'Reset filters' }).click();
    await page.locator('[role=log] .line').first().waitFor();
  }),

  'what is empty says what to do': scenario(
    async (page, mock) => {
      await page.getByText('Nothing of this machine is public now').waitFor();
      await page.goto(`${mock.url}/#/inspector`);
      await page.getByRole('link', { name: 'New tunnel' }).waitFor();
      mock.setTunnel(tunnel(1, { name: 'shop' }), 'created');
      const visit = page.getByRole('link', { name: 'Visit https://shop.relay.example' });
      assert.equal(await visit.getAttribute('href'), 'https://shop.relay.example');
      await page.goto(`${mock.url}/#/overview`);
      await page.getByText('Your tunnels are reachable').waitFor();
    },
    {
      prepare: (mock) => {
        mock.tunnels.clear();
        mock.requests = [];
      },
    },
  ),

  'text twice as large': scenario(
    async (page, mock) => {
      await textSize(page, 32);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 });
        for (const one of pages) {
          await page.goto(`${mock.url}/#/${one}`);
          await page.locator('h1').waitFor({ state: 'attached' });
          const wider = await page.evaluate(
            () => document.documentElement.scrollWidth - innerWidth,
          );
          assert.ok(wider <= 0, `${one} is ${wider} pixels wider than ${width}`);
        }
        // Rows grow with their text, so none hides a part of the other.
        for (const [one, row] of [
          ['tunnels', '[data-tunnel]'],
          ['inspector', '[role=option]'],
        ] as const) {
          await page.goto(`${mock.url}/#/${one}`);
          await page.locator(row).nth(1).waitFor();
          const over = await page
            .locator(row)
            .evaluateAll((rows) => rows.filter((r) => r.scrollHeight > r.clientHeight + 2).length);
          assert.equal(over, 0, `${over} rows of ${one} are too low at ${width}`);
        }
      }
    },
    { prepare: (mock) => void mock.requests.push(summary(500, { path: '/x'.repeat(300) })) },
  ),
};
