/** Every page of an app in both languages, both themes and three widths. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { inFirefox, open, violations } from './browser';
import type { Runs } from './runner';

/** Where pictures are put. */
export const pictures = new URL('../screenshots/', import.meta.url).pathname;

/** A page: its name, its place, and what it shows when it is ready. */
export type Stop = readonly [name: string, hash: string, ready: string];

/** What a tour needs of an app. */
export interface App {
  /** What its runs are called, and what its pictures begin with. */
  name: string;
  prefix: string;
  sizes: Record<'wide' | 'tablet' | 'phone', readonly [width: number, height: number]>;
  stops: readonly Stop[];
  /** The stops that are loaded. The others are reached within the page. */
  loaded: readonly string[];
  begin: () => Promise<Guide>;
}

/** One tour's server. */
export interface Guide {
  url: string;
  /** Prepares what the server answers at a stop. */
  prepare: (stop: string) => void;
  /** Does and checks what a stop asks for besides. */
  arrived: (page: Page, stop: string, ready: string) => Promise<void>;
  end: () => Promise<void>;
}

interface Look {
  size: keyof App['sizes'];
  theme: 'light' | 'dark';
  lang: 'en' | 'zh-CN';
}

/** Returns the tours of an app, by name; their pictures' names begin with shots. */
export function tours(app: App, shots = pictures): Runs {
  mkdirSync(pictures, { recursive: true });
  const runs: Runs = {};
  for (const size of ['wide', 'tablet', 'phone'] as const)
    for (const theme of ['light', 'dark'] as const)
      for (const lang of ['en', 'zh-CN'] as const) {
        // A tablet's layout is one of the other two: one look in each language has to be enough.
        if (size === 'tablet' && (theme === 'dark') === (lang === 'en')) continue;
        const name = `${size}-${theme}-${lang}`;
        runs[`${app.name} ${name}`] = (browser) =>
          visit(app, browser, { size, theme, lang }, `${shots}${app.prefix}${name}`);
      }
  return runs;
}

async function visit(app: App, browser: Browser, look: Look, shots: string): Promise<void> {
  const [width, height] = app.sizes[look.size];
  // Colours follow the theme and names the language: half of the pairs see both, in one browser.
  const examined =
    !inFirefox &&
    look.size !== 'tablet' &&
    (look.size === 'wide') === ((look.theme === 'light') === (look.lang === 'en'));
  const guide = await app.begin();
  const { page, problems } = await open(browser, {
    viewport: { width, height },
    colorScheme: look.theme,
    locale: look.lang,
    hasTouch: look.size === 'phone',
  });
  try {
    for (const [stop, hash, ready] of app.stops) {
      guide.prepare(stop);
      if (app.loaded.includes(stop)) await page.goto('about:blank');
      await page.goto(`${guide.url}/${hash}`);
      await page.locator(ready).first().waitFor();
      await guide.arrived(page, stop, ready);
      assert.equal(await page.locator('html').getAttribute('lang'), look.lang);
      assert.equal(await page.locator('html').getAttribute('data-theme'), look.theme);
      if (examined) assert.deepEqual(await violations(page), [], `axe on ${stop}`);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `${stop} is ${wider} pixels wider than the window`);
      // A card hides what is too wide for it: then a person cannot reach it either.
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll('table')]
          .filter((t) => t.getBoundingClientRect().right > innerWidth)
          .map((t) => t.ariaLabel),
      );
      assert.deepEqual(cut, [], `tables of ${stop} are cut off`);
      await page.screenshot({ path: `${shots}-${stop}.png` });
    }
    assert.deepEqual(problems, []);
  } finally {
    await page.context().close();
    await guide.end();
  }
}
