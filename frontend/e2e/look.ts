/** Takes the screenshots of every page against the mock: `npm run look`. */
import { mkdirSync } from 'node:fs';
import { launch, open } from './browser';
import { Mock, unconfigured } from './mock';

const out = new URL('../screenshots/', import.meta.url).pathname;
mkdirSync(out, { recursive: true });
const wanted = process.argv.slice(2);

const mock = new Mock();
await mock.start();
const browser = await launch();
const traffic = setInterval(() => {
  const { in: inward, out: outward } = mock.status.bytes;
  mock.setStatus({
    bytes: {
      in: inward + Math.round(Math.random() * 40_000),
      out: outward + Math.round(Math.random() * 700_000),
    },
  });
}, 400);

const sizes = { wide: [1280, 800], phone: [390, 844] } as const;
const stops = [
  ['first', ''],
  ['overview', '#/overview'],
  ['tunnels', '#/tunnels'],
  ['create', '#/tunnels/new'],
  ['inspector', '#/inspector'],
  ['detail', '#/inspector/r_38'],
  ['logs', '#/logs'],
  ['diagnostics', '#/diagnostics'],
  ['settings', '#/settings'],
] as const;

for (const [size, [width, height]] of Object.entries(sizes))
  for (const theme of ['light', 'dark'] as const)
    for (const lang of ['en', 'zh-CN'] as const) {
      const name = `${size}-${theme}-${lang}`;
      if (wanted.length > 0 && !wanted.some((w) => name.includes(w))) continue;
      const { page, problems } = await open(browser, {
        viewport: { width, height },
        colorScheme: theme,
        locale: lang,
        hasTouch: size === 'phone',
      });
      for (const [stop, hash] of stops) {
        const before = mock.status;
        if (stop === 'first') mock.status = { ...before, ...unconfigured };
        await page.goto('about:blank');
        await page.goto(`${mock.url}/${hash}`);
        await page.locator('h1').first().waitFor({ state: 'attached' });
        if (stop === 'diagnostics') await page.locator('.empty button').click();
        await page.waitForTimeout(stop === 'overview' ? 6000 : 400);
        await page.screenshot({ path: `${out}${name}-${stop}.png` });
        mock.status = before;
      }
      if (problems.length > 0) console.error(name, problems);
      await page.context().close();
    }
clearInterval(traffic);
await browser.close();
await mock.stop();
