/** Takes README's picture of the Web UI, against the mock: `npm run picture`. */
import { launch, open } from './browser';
import { Mock } from './mock';

const file = new URL('../../docs/images/web-ui.png', import.meta.url).pathname;
const seconds = 181; // the page shows three minutes

const browser = await launch();
const mock = new Mock();
mock.tunnels.delete('t_0007'); // what is left fills the window
await mock.start();
const { page } = await open(browser, { viewport: { width: 1280, height: 800 }, locale: 'en' });
await page.clock.install();
await page.goto(`${mock.url}/#/overview`);
await page.locator('text=shop.relay.example').first().waitFor();
for (let i = 0; i < seconds; i++) {
  const wave = 1 + Math.sin(i / 9) / 2 + Math.sin(i / 3.7) / 4;
  mock.status.bytes.in += Math.round(420_000 * wave);
  mock.status.bytes.out += Math.round(1_650_000 * wave * wave);
  mock.emit('status', mock.status);
  await new Promise((resolve) => setTimeout(resolve, 20)); // until the page has heard of it
  await page.clock.runFor(1000);
}
await page.screenshot({ path: file });
await browser.close();
await mock.stop();
console.log(file);
