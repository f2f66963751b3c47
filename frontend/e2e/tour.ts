/** Every page in both languages, both themes and two widths. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { inFirefox, open, violations } from './browser';
import { mistake } from './fixtures';
import { Mock, unconfigured } from './mock';

const sizes = { wide: [1280, 800], tablet: [768, 1024], phone: [390, 844] } as const;

/** What each stop shows when it is ready. */
export const stops: readonly [name: string, hash: string, ready: string][] = [
  ['first', '', 'textarea'],
  ['overview', '#/overview', 'text=shop.relay.example'],
  ['tunnels', '#/tunnels', '[data-tunnel=t_0001]'],
  ['create', '#/tunnels/new', '#f-local_port'],
  ['declared', '#/tunnels/t_0004', 'dialog [role=status]'],
  ['inspector', '#/inspector', '#r-r_40'],
  ['detail', '#/inspector/r_37', '.detail pre'],
  ['logs', '#/logs', '[role=log] .line'],
  ['diagnostics', '#/diagnostics', '.empty button'],
  ['settings', '#/settings', 'table'],
  ['mistake', '#/overview', '[role=alert]'],
];

export function tour(shots: string): Record<string, (browser: Browser) => Promise<void>> {
  const runs: Record<string, (browser: Browser) => Promise<void>> = {};
  for (const [size, [width, height]] of Object.entries(sizes))
    for (const theme of ['light', 'dark'] as const)
      for (const lang of ['en', 'zh-CN'] as const) {
        const name = `${size}-${theme}-${lang}`;
        // A tablet's layout is one of the other two; one look at it has to be enough.
        if (size === 'tablet' && (theme === 'dark') === (lang === 'en')) continue;
        runs[`pages ${name}`] = (browser) => visit(browser, name, { width, height, theme, lang });
      }
  return runs;

  async function visit(
    browser: Browser,
    name: string,
    o: { width: number; height: number; theme: 'light' | 'dark'; lang: string },
  ): Promise<void> {
    const mock = new Mock();
    await mock.start();
    const { page, problems } = await open(browser, {
      viewport: { width: o.width, height: o.height },
      colorScheme: o.theme,
      locale: o.lang,
      hasTouch: o.width < 500,
    });
    const configured = mock.status;
    try {
      for (const [stop, hash, ready] of stops) {
        mock.config.error = stop === 'settings' || stop === 'mistake' ? mistake : undefined;
        mock.status = stop === 'first' ? { ...configured, ...unconfigured } : configured;
        // The first page is loaded, the others are reached within it.
        if (stop === 'first' || stop === 'overview') await page.goto('about:blank');
        await page.goto(`${mock.url}/${hash}`);
        await page.locator(ready).first().waitFor();
        if (stop === 'diagnostics') {
          await page.locator(ready).click();
          await page.locator('li .advice').first().waitFor();
        }
        assert.equal(await page.locator('html').getAttribute('lang'), o.lang);
        assert.equal(await page.locator('html').getAttribute('data-theme'), o.theme);
        // Colours follow the theme and names the language: half of the pairs see both, in one browser.
        if (
          !inFirefox &&
          o.width !== 768 &&
          o.width > 500 === ((o.theme === 'light') === (o.lang === 'en'))
        )
          assert.deepEqual(await violations(page), [], `axe on ${stop}`);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wider <= 0, `${stop} is ${wider} pixels wider than the window`);
        await page.screenshot({ path: `${shots}${name}-${stop}.png` });
      }
      assert.deepEqual(problems, []);
    } finally {
      await page.context().close();
      await mock.stop();
    }
  }
}
