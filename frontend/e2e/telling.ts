/** What is told besides: by what is pointed at, come to or touched, and of the file. */
import assert from 'node:assert/strict';
import { cutOff } from './browser';
import { endpoint, mistake, summary, tunnel } from './fixtures';
import { scenario } from './scenarios';

const error =
  'to use shop.customer.example, prove that it is yours: add the DNS TXT record ' +
  '_adit.shop.customer.example with the value adit-client=Zm9vYmFyYmF6cXV4, and try again';
const failed = tunnel(1, { name: 'shop', state: 'failed', error });

export const scenarios = {
  'a service that is down is told where its tunnel is, until it is back': scenario(
    async (page, mock) => {
      const shop = mock.tunnels.get('t_0001')!;
      const tell = (error: string) =>
        mock.emit('endpoint', { action: 'changed', endpoint: { ...endpoint(shop), error } });
      const why = `nothing listens at the local address ${shop.local_ip}:${shop.local_port}`;
      await page.goto(`${mock.url}/#/tunnels`);
      const row = page.locator('[data-tunnel=t_0001]');
      await row.getByText('Running').waitFor();
      tell(why);
      await row.getByText('Service down').waitFor();
      await row.getByText('Nothing listens at the local address').waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByText('Nothing listens at the local address').waitFor();
      tell(`/api: ${why}`);
      await page.getByText('/api: nothing listens at the local address').waitFor();
      tell('');
      await page.getByText('nothing listens').waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'Tunnels' }).click();
      await row.getByText('Running').waitFor();
    },
  ),

  'an error that is cut short is told whole to the keyboard': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      const cut = page.locator('[data-tunnel=t_0001] .error button');
      await cut.waitFor();
      const tip = page.getByRole('tooltip', { name: error });
      await page.locator('[data-tunnel=t_0001]').hover({ position: { x: 4, y: 4 } });
      assert.equal(await tip.count(), 0);
      // By the Tab key, as a person comes to it.
      await page.getByLabel('State').focus();
      await page.keyboard.press('Tab');
      await page.locator('[data-tunnel=t_0001] .error button:focus-visible').waitFor();
      await tip.waitFor();
      await page.keyboard.press('Escape');
      await tip.waitFor({ state: 'detached' });
      // A pointer rests on it, and goes into what it tells.
      await cut.hover();
      await tip.waitFor();
      await tip.hover();
      assert.equal(await tip.count(), 1);
      await page.getByRole('heading', { name: 'Tunnels' }).hover();
      await tip.waitFor({ state: 'detached' });
    },
    { prepare: (mock) => void mock.tunnels.set(failed.id, failed) },
  ),

  'an error that is cut short is told whole to a finger': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${mock.url}/#/tunnels`);
      await page.locator('[data-tunnel=t_0001] .error button').tap();
      const tip = page.getByRole('tooltip', { name: error });
      await tip.waitFor();
      const box = await tip.boundingBox();
      assert.ok(box && box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
      assert.ok(box.y >= 0 && box.y + box.height <= 844, JSON.stringify(box));
      await page.getByRole('heading', { name: 'Tunnels' }).tap();
      await tip.waitFor({ state: 'detached' });
    },
    { prepare: (mock) => void mock.tunnels.set(failed.id, failed), touch: true },
  ),

  'a request of an earlier day says which': scenario(
    async (page, mock) => {
      await page.clock.setFixedTime('2026-05-04T12:00:00Z'); // at any hour, midnight is far
      await page.goto(`${mock.url}/#/inspector`);
      const time = page.locator('#r-r_40 .time');
      for (const width of [390, 1000, 1280]) {
        await page.setViewportSize({ width, height: 844 });
        await page.locator('#r-r_39 .time', { hasText: /^\d\d:\d\d:\d\d$/ }).waitFor();
        assert.match((await time.textContent()) ?? '', /^[A-Z][a-z]{2} \d+, 20\d\d, \d\d:/);
        assert.deepEqual(await cutOff(page), [], `the list is cut off at ${width}`);
      }
    },
    {
      prepare: (mock) => {
        mock.requests[38] = summary(39, { time: '2026-05-04T11:59:00Z' });
        mock.requests[39] = summary(40, { time: '2024-09-28T10:20:30Z' });
      },
    },
  ),

  'a button that is a picture says its name to the keyboard': scenario(async (page) => {
    const copy = page.getByRole('button', { name: 'Copy public URL: shop' });
    await copy.waitFor();
    await page.getByRole('link', { name: 'https://shop.relay.example' }).first().focus();
    await page.keyboard.press('Tab');
    await page.getByRole('tooltip', { name: 'Copy public URL' }).waitFor();
    assert.equal(await page.locator('[title]').count(), 0);
    // What the keyboard leaves is not told any more.
    await page.keyboard.press('Tab');
    await page.getByRole('tooltip', { name: 'Copy public URL' }).waitFor({ state: 'detached' });
    await page.getByRole('tooltip').waitFor();
  }),

  'a mistake in adit.toml is told where its tunnels are, in the reader’s language': scenario(
    async (page, mock) => {
      const told = page.getByRole('alert');
      await told.getByText('/etc/adit/adit.toml 有误').waitFor();
      await told.getByText('须为 1 到 65535').waitFor();
      await page.goto(`${mock.url}/#/tunnels`);
      await told.getByText('第 14 行').waitFor();
      await told.getByRole('link').click();
      await page.waitForURL(/#\/settings$/);
      await told.getByText('须为 1 到 65535').waitFor();
      assert.doesNotMatch(await told.innerText(), /must/);
      // Once the file is mended, nothing is said any more.
      mock.config.error = undefined;
      await told.waitFor({ state: 'detached' });
    },
    { prepare: (mock) => void (mock.config.error = mistake), lang: 'zh-CN' },
  ),

  'the overview says that a tunnel has failed': scenario(async (page) => {
    await page.getByText('One tunnel has failed.').waitFor();
    // What it tells leaves the cards beside each other.
    const top = async (name: string) =>
      (await page.getByRole('region', { name }).boundingBox())?.y ?? -1;
    assert.equal(await top('Throughput'), await top('Connected'));
    await page.getByRole('link', { name: 'Show why' }).click();
    await page.waitForURL(/#\/tunnels\?state=failed$/);
    await page.locator('[data-tunnel]').first().waitFor();
    assert.equal(await page.locator('[data-tunnel]').count(), 1);
  }),

  'what is newer than the page is said as it is called': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await page.locator('[data-tunnel=t_0001]').waitFor();
    mock.setTunnel(tunnel(1, { name: 'shop', state: 'draining' as 'running' }));
    await page.locator('[data-tunnel=t_0001]').getByText('draining').waitFor();
  }),

  'a page with an error in it leaves the others in reach': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await page.getByRole('alert').getByText('This page cannot be shown.').waitFor();
      await page.getByRole('link', { name: 'Logs' }).click();
      await page.locator('[role=log] .line').first().waitFor();
      await page.getByRole('link', { name: 'Tunnels' }).click();
      await page.getByRole('button', { name: 'Reload' }).waitFor();
    },
    {
      prepare: (mock) => {
        mock.tunnels.set('t_0001', { ...tunnel(1), type: undefined as unknown as 'tcp' });
      },
      allow: /TypeError/,
    },
  ),

  'what is printed is all of it, on white': scenario(async (page, mock) => {
    await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
    await page.goto(`${mock.url}/#/diagnostics`);
    await page.locator('html[data-theme=dark]').waitFor({ state: 'attached' });
    const paper = await page.evaluate(() => ({
      text: getComputedStyle(document.body).color,
      main: getComputedStyle(document.querySelector('main')!).overflowY,
      nav: document.querySelector('nav')?.checkVisibility(),
    }));
    assert.deepEqual(paper, { text: 'rgb(20, 24, 31)', main: 'visible', nav: false });
  }),

  'a browser that forbids storage shows the page': scenario(async (page, mock) => {
    await page.addInitScript(() => {
      for (const name of ['localStorage', 'sessionStorage'])
        Object.defineProperty(window, name, {
          get() {
            throw new DOMException('denied', 'SecurityError');
          },
        });
    });
    await page.goto(`${mock.url}/#/settings`);
    await page.reload();
    await page.locator('main').getByRole('radio', { name: 'Dark' }).check({ force: true });
    await page.locator('html[data-theme=dark]').waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('Your tunnels are reachable').waitFor();
  }),
};
