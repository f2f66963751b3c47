/**
 * Hostile pages against a real daemon, in a real browser: `npm run e2e:attack`.
 *   ADIT_WEB_UI        a daemon without Bearer protection
 *   ADIT_CONSOLE_PORT  a free port; http://127.0.0.1:PORT is in its allowed_origins
 *   ADIT_LOGIN_LINK    signs in at a second daemon, whose protection is on; without it there is none
 *   ADIT_AUTH_TOKEN    a token that the relay accepts, for the attacker to plant
 * That nothing was changed is for the caller to look up.
 */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserContext, Page } from 'playwright-core';
import { attackerPage, need } from './attacker';
import { inFirefox, launch } from './browser';

const ui = need('ADIT_WEB_UI');
const token = need('ADIT_AUTH_TOKEN');
const signIn = process.env.ADIT_LOGIN_LINK;
const link = signIn ? new URL(signIn) : undefined;
let step = 'start';

async function site(port: number): Promise<{ server: Server; origin: string }> {
  const server = createServer((_, answer) => {
    answer.setHeader('Content-Type', 'text/html');
    answer.end(attackerPage);
  });
  await new Promise<void>((up) => server.listen(port, '127.0.0.1', up));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Runs the attack from the page that is open, and looks at what it left. */
async function attack(page: Page, what: string, base: string): Promise<void> {
  step = `${what}: all that stays on the page`;
  const through = await page.evaluate(
    ([to, planted]) =>
      (window as unknown as { attack: (b: string, t: string) => Promise<string[]> }).attack(
        to ?? '',
        planted ?? '',
      ),
    [base, token],
  );
  assert.deepEqual(through, [], what);
  step = `${what}: a form that leaves the page`;
  const [answer] = await Promise.all([
    page.waitForResponse(
      (r) => r.request().isNavigationRequest() && r.frame() === page.mainFrame(),
    ),
    page.evaluate(() => (window as unknown as { last: HTMLFormElement }).last.submit()),
  ]);
  assert.equal(answer.status(), 403, `${what}: a form that leaves the page`);
  console.log(`ok    ${what}`);
}

/** Attacks from another port of this host, and from a name rebound to the daemon. */
async function besiege(context: BrowserContext, who: string, base: string, evil: string) {
  const rebound = `http://evil.example:${new URL(base).port}`;
  const storageState = await context.storageState();
  for (const [from, url, to] of [
    ['another origin', evil, base],
    ['a rebound name', `${rebound}/attacker`, rebound],
    ['a foreign name', `${rebound}/attacker`, base],
  ] as const) {
    step = `${who}, from ${from}: open`;
    // Of its own, as what an attack leaves behind can keep Chromium from opening a page.
    const own = inFirefox ? browser : await launch(['evil.example']);
    const page = await own.newPage({ storageState });
    await page.route(`${rebound}/attacker`, (route) =>
      route.fulfill({ contentType: 'text/html', body: attackerPage }),
    );
    await page.goto(url);
    await attack(page, `${who}, from ${from}`, to);
    step = `${who}, from ${from}: close`;
    await (inFirefox ? page.context() : own).close();
  }
}

/** The console of an allowed origin can do what a console does, but not frame the UI. */
async function allowed(context: BrowserContext, origin: string): Promise<void> {
  step = 'an allowed console';
  const page = await context.newPage();
  await page.goto(origin);
  const got = await page.evaluate(async (base) => {
    const status = await fetch(`${base}/api/v1/status`);
    const made = await fetch(`${base}/api/v1/tunnels`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"type":"tcp","local_port":9,"name":"by-the-console"}',
    });
    const gone = await fetch(base + (made.headers.get('Location') ?? ''), { method: 'DELETE' });
    const event = await new Promise<string>((resolve) => {
      const source = new EventSource(`${base}/api/v1/events`);
      source.onerror = () => resolve('error');
      source.addEventListener('status', () => {
        source.close();
        resolve('status');
      });
    });
    await new Promise((loaded) => {
      const frame = document.createElement('iframe');
      frame.onload = loaded;
      frame.src = base;
      document.body.append(frame);
    });
    return [status.status, made.status, gone.status, event];
  }, ui);
  assert.deepEqual(got, [200, 201, 204, 'status']);
  assert.match(
    page.frames()[1]?.url() ?? '',
    /^(chrome-error:|about:neterror)/,
    'the UI was framed',
  );
  await page.close();
  console.log('ok    an allowed console');
}

// Playwright waits for a page's own promises without an end.
const deadline = setTimeout(() => {
  console.error(`FAIL  the attack did not end in time: ${step}`);
  process.exit(1);
}, 180_000);
const attacker = await site(0);
const console_ = await site(Number(need('ADIT_CONSOLE_PORT')));
const browser = await launch(['evil.example']);
try {
  step = 'sign in';
  const context = await browser.newContext({ locale: 'en' });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const mine = async () => page.evaluate(async () => (await fetch('/api/v1/status')).status);
  if (link) {
    await page.goto(link.href);
    await page.waitForURL((url) => !url.pathname.startsWith('/login'));
    assert.equal(await mine(), 200, 'signed in');
  }
  await allowed(context, console_.origin);
  await besiege(context, 'an open daemon', ui, attacker.origin);
  if (link) {
    await besiege(context, 'a signed-in browser', link.origin, attacker.origin);
    await page.goto(link.origin);
    assert.equal(await mine(), 200, 'still signed in');
  }
} catch (error) {
  console.error(`FAIL  ${step}: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  clearTimeout(deadline);
  await browser.close();
  attacker.server.closeAllConnections();
  console_.server.closeAllConnections();
  attacker.server.close();
  console_.server.close();
}
