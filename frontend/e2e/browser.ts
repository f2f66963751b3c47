/** Debian's Chromium, told to leave the network alone. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  chromium,
  firefox,
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
  // The last three are a page behind the address bar, which each window would draw in a
  // process of its own before anybody types there: more work than many a page under test.
  '--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication,' +
    'CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,' +
    'WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup',
];

/** Which browser drives the scenarios: Chromium, or with ADIT_BROWSER=firefox Debian's Firefox. */
export const inFirefox = process.env.ADIT_BROWSER === 'firefox';

/** Returns where a browser is, or ends the program as a missing tool does. */
function installed(name: string, variable: string): string {
  const path = process.env[variable] ?? `/usr/bin/${name}`;
  if (existsSync(path)) return path;
  console.error(`there is no browser at ${path}: install ${name}, or name one in ${variable}`);
  process.exit(process.env.ADIT_REQUIRE === '1' ? 1 : 77);
}

/**
 * Starts the browser. Names are resolved only if they are loopback's; those of
 * local are loopback's, too.
 */
export async function launch(local: string[] = [], more: string[] = []): Promise<Browser> {
  if (inFirefox) return launchFirefox(local);
  return chromium.launch({
    executablePath: installed('chromium', 'CHROMIUM'),
    args: [
      ...quiet.filter((flag) => flag !== '--disable-quic' || !more.includes('--enable-quic')),
      ...more,
      `--host-resolver-rules=${local.map((name) => `MAP ${name} 127.0.0.1 , `).join('')}` +
        'MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost',
    ],
  });
}

/** As it is installed, by WebDriver BiDi. Playwright's settings keep it from calling home. */
function launchFirefox(local: string[]): Promise<Browser> {
  return firefox.launch({
    channel: 'moz-firefox',
    executablePath: installed('firefox-esr', 'FIREFOX'),
    firefoxUserPrefs: {
      'network.dns.localDomains': local.join(','),
      // The protocol has no word for this yet.
      'ui.prefersReducedMotion': 1,
    },
  });
}

// In Firefox Playwright adds the style "body {}" before it takes a picture, and the page's
// policy forbids that; this is how Firefox calls it.
const toggled = 'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=';

/** A page that remembers what went wrong in it. */
export interface Watched {
  page: Page;
  problems: string[];
}

export async function open(browser: Browser, options: BrowserContextOptions): Promise<Watched> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(40_000);
  // Firefox's protocol has no word for the theme of the system either.
  if (inFirefox && options.colorScheme)
    await context.addInitScript(
      (theme) => location.protocol === 'http:' && localStorage.setItem('adit.theme', theme),
      options.colorScheme,
    );
  const page = await context.newPage();
  const problems: string[] = [];
  const note = (text: string) => void (text.includes(toggled) || problems.push(text));
  page.on('pageerror', (error) => note(`${error.name}: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') note(message.text());
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
