/** Every page of the console in both languages, both themes and three widths. */
import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { inFirefox, open, violations } from '../browser';
import { ConsoleMock } from './mock';

const sizes = { wide: [1360, 900], tablet: [1024, 768], phone: [390, 844] } as const;

/** What each stop shows when it is ready. */
export const stops: readonly [name: string, hash: string, ready: string][] = [
  ['setup', '', '#code'],
  ['signin', '', '#password'],
  ['overview', '#/overview', '[data-row=s_0]'],
  ['clients', '#/clients', '[data-row=shop]'],
  ['client', '#/clients/shop', 'dialog dl'],
  ['endpoints', '#/endpoints', '[data-row=e_1]'],
  ['domains', '#/domains', '[data-row="demo.example.org"]'],
  ['policies', '#/policies', '[data-row="tcp.20001"]'],
  ['policy', '#/policies/shop.relay.example', '.days button'],
  ['access', '#/access', '[data-row^=a_]'],
  ['errors', '#/errors', '[data-row^=a_]'],
  ['nodes', '#/nodes', '[data-row=n_0]'],
  ['audit', '#/audit', '[data-row="31"]'],
  ['settings', '#/settings', '[data-row=siem]'],
];

export function tour(shots: string): Record<string, (browser: Browser) => Promise<void>> {
  const runs: Record<string, (browser: Browser) => Promise<void>> = {};
  for (const [size, [width, height]] of Object.entries(sizes))
    for (const theme of ['light', 'dark'] as const)
      for (const lang of ['en', 'zh-CN'] as const) {
        const name = `${size}-${theme}-${lang}`;
        // One look at each language of a tablet has to be enough.
        if (size === 'tablet' && (theme === 'dark') === (lang === 'en')) continue;
        runs[`console ${name}`] = (browser) => visit(browser, name, { width, height, theme, lang });
      }
  return runs;

  async function visit(
    browser: Browser,
    name: string,
    o: { width: number; height: number; theme: 'light' | 'dark'; lang: string },
  ): Promise<void> {
    const mock = new ConsoleMock();
    await mock.start();
    const { page, problems } = await open(browser, {
      viewport: { width: o.width, height: o.height },
      colorScheme: o.theme,
      locale: o.lang,
      hasTouch: o.width < 500,
    });
    const inside = mock.session;
    try {
      for (const [stop, hash, ready] of stops) {
        const out = stop === 'setup' || stop === 'signin';
        mock.session = { ...inside, signed_in: !out, setup_needed: stop === 'setup' };
        // The first pages are loaded, the others are reached within them.
        if (out || stop === 'overview') await page.goto('about:blank');
        await page.goto(`${mock.url}/${hash}`);
        await page.locator(ready).first().waitFor();
        assert.equal(await page.locator('html').getAttribute('lang'), o.lang);
        assert.equal(await page.locator('html').getAttribute('data-theme'), o.theme);
        // Colours follow the theme and names the language: half of the pairs see both, in one browser.
        if (
          !inFirefox &&
          o.width !== 1024 &&
          o.width > 500 === ((o.theme === 'light') === (o.lang === 'en'))
        )
          assert.deepEqual(await violations(page), [], `axe on ${stop}`);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wider <= 0, `${stop} is ${wider} pixels wider than the window`);
        // A card hides what is too wide for it: then a person cannot reach it either.
        const cut = await page.evaluate(() =>
          [...document.querySelectorAll('table')]
            .filter((t) => t.getBoundingClientRect().right > innerWidth)
            .map((t) => t.ariaLabel),
        );
        assert.deepEqual(cut, [], `tables of ${stop} are cut off`);
        await page.screenshot({ path: `${shots}console-${name}-${stop}.png` });
      }
      assert.deepEqual(problems, []);
    } finally {
      await page.context().close();
      await mock.stop();
    }
  }
}
