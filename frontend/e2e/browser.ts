/** Debian's Chromium, told to leave the network alone. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
} from 'playwright-core';

const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-domain-reliability',
  '--no-pings',
  '--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication,' +
    'CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions',
];

/** Starts the browser. Names are resolved only if they are loopback's, or resolve maps them. */
export async function launch(resolve = '', more: string[] = []): Promise<Browser> {
  const path = process.env.CHROMIUM ?? '/usr/bin/chromium';
  if (!existsSync(path)) {
    console.error(`there is no browser at ${path}: install chromium, or name one in CHROMIUM`);
    process.exit(process.env.ADIT_REQUIRE === '1' ? 1 : 77);
  }
  return chromium.launch({
    executablePath: path,
    args: [
      ...quiet.filter((flag) => flag !== '--disable-quic' || !more.includes('--enable-quic')),
      ...more,
      `--host-resolver-rules=${resolve}MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost`,
    ],
  });
}

/** A page that remembers what went wrong in it. */
export interface Watched {
  page: Page;
  problems: string[];
}

export async function open(browser: Browser, options: BrowserContextOptions): Promise<Watched> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(40_000);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(`${error.name}: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text());
  });
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (hostname !== '127.0.0.1' && protocol !== 'blob:')
      problems.push(`asked for ${request.url()}`);
  });
  return { page, problems };
}

/** Waits for what the page, or a mock, comes to by itself. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 40_000;
  for (; !(await holds()); await new Promise((go) => setTimeout(go, 25)))
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
}

/** Waits until a field has a text. */
export function has(field: Locator, text: string): Promise<void> {
  return until(`${field} with ${text}`, async () => (await field.inputValue()) === text);
}

/** Waits until there are so many of something. */
export function counts(list: Locator, many: number): Promise<void> {
  return until(`${many} times ${list}`, async () => (await list.count()) === many);
}

/** The browser's own setting for the size of text, as a person makes it. */
export async function textSize(page: Page, pixels: number): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Page.setFontSizes', {
    fontSizes: { standard: pixels, fixed: Math.round(pixels * 0.8125) },
  });
}

/** Returns what reaches beyond the right edge of the window, where nobody can see it. */
export function cutOff(page: Page): Promise<string[]> {
  // What says with an ellipsis that there is more is meant so, and code scrolls.
  return page.evaluate(() =>
    [...document.querySelectorAll('#app *')]
      .filter((e) => e.checkVisibility() && !e.closest('.sr-only, thead, pre'))
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
      .filter((e) => {
        for (let up: Element | null = e; up; up = up.parentElement)
          if (getComputedStyle(up).textOverflow === 'ellipsis') return false;
        return true;
      })
      .map((e) => `${e.tagName} ${e.className} ${(e.textContent ?? '').trim().slice(0, 40)}`),
  );
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  id: string;
  help: string;
  nodes: { target: string[]; failureSummary?: string }[];
}

/** Returns what axe-core finds wrong with the page as it is now. */
export async function violations(page: Page): Promise<string[]> {
  // The devtools protocol runs this, so the page's own policy does not stop it.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const scope = window as unknown as {
      axe: { run: (options: object) => Promise<{ violations: unknown }> };
    };
    return (await scope.axe.run({ resultTypes: ['violations'] })).violations;
  });
  return (found as Violation[]).map(
    (v) =>
      `${v.id}: ${v.help}: ${v.nodes.map((n) => `${n.target.join(' ')} ${n.failureSummary ?? ''}`).join('; ')}`,
  );
}
