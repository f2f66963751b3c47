/** What a person does with the page, one thing at a time. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { counts, has, open, until } from './browser';
import { summary, tunnel } from './fixtures';
import { goodToken, Mock, refusedToken, unconfigured, unreachableToken } from './mock';

type Scenario = (page: Page, mock: Mock) => Promise<void>;
interface Setting {
  prepare?: (mock: Mock) => void;
  /** What the browser may complain of: it calls every refused request an error. */
  allow?: RegExp;
  lang?: string;
  /** There are fingers. */
  touch?: boolean;
}

export function scenario(run: Scenario, { prepare, allow, lang = 'en', touch }: Setting = {}) {
  return async (browser: Browser): Promise<void> => {
    const mock = new Mock();
    prepare?.(mock);
    await mock.start();
    const { page, problems } = await open(browser, {
      viewport: { width: 1280, height: 800 },
      locale: lang,
      hasTouch: touch,
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    try {
      await page.goto(mock.url);
      await run(page, mock).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${problems.join('\n')}\n${mock.seen.join(', ')}`);
      });
      assert.deepEqual(
        problems.filter((p) => !allow?.test(p)),
        [],
      );
    } finally {
      // A request may be under way that a scenario answers itself.
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.context().close();
      await mock.stop();
    }
  };
}

const said = {
  from: 'origin',
  time: '2026-05-04T10:21:00Z',
  type: 'text',
  size: 17,
} as const;
const text = (page: Page, wanted: string | RegExp) => page.getByText(wanted).first();
const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first();
const row = (page: Page, id: string) => page.locator(`[data-tunnel="${id}"]`);

/** Waits until the page has all lists and an event from the stream. */
async function followed(page: Page, mock: Mock): Promise<void> {
  await text(page, 'shop.relay.example').waitFor();
  mock.setStatus({ rtt_ms: 77 });
  await text(page, '77 ms').waitFor();
}

async function menu(page: Page, id: string, item: string): Promise<void> {
  await row(page, id).getByRole('button', { name: /^More/ }).click();
  await page.getByRole('menuitem', { name: item }).click();
}

export const scenarios = {
  'first run, with every way to go wrong': scenario(
    async (page) => {
      const field = page.getByLabel('Auth token');
      const connect = button(page, 'Connect');
      await connect.click();
      await text(page, 'Paste the token first.').waitFor();
      await field.fill('eyJhbGciOi');
      await text(page, 'A token starts with adit_').waitFor();
      await field.fill('adit_short');
      await connect.click();
      await text(page, 'A part of the token is missing').waitFor();
      await field.fill('adit_wrong0123456789abcdef');
      await connect.click();
      await text(page, 'its check sum is wrong').waitFor();
      await field.fill(refusedToken);
      await connect.click();
      await text(page, 'The relay refuses this token').waitFor();
      await field.fill(unreachableToken);
      await connect.click();
      await text(page, 'The relay does not answer').waitFor();
      await field.fill(`adit login ${goodToken}`);
      await field.press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await text(page, 'Your tunnels are reachable').waitFor();
      await text(page, 'relay.example:4433 · as workshop-nas').waitFor();
    },
    {
      prepare: (mock) => (mock.status = { ...mock.status, ...unconfigured }),
      allow: /status of (400|503)/,
    },
  ),

  'create a tunnel, checked as one types': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await button(page, 'New tunnel').click();
      const port = page.getByLabel('Local port');
      await port.fill('70000');
      await text(page, 'from 1 to 65535').waitFor();
      // Typing an address fills both parts of it once it is whole; half of it is no mistake.
      await port.press('ControlOrMeta+a');
      await port.pressSequentially('localhost:30');
      await page.locator('#f-local_port-error').waitFor({ state: 'detached' });
      await port.pressSequentially('00');
      await port.press('Tab');
      await has(port, '3000');
      await has(page.getByLabel('Local address'), 'localhost');
      // And so does pasting one, at once.
      await page.evaluate(() => navigator.clipboard.writeText('http://192.168.1.9:8080/x'));
      await port.press('ControlOrMeta+a');
      await port.press('ControlOrMeta+v');
      await has(port, '8080');
      await has(page.getByLabel('Local address'), '192.168.1.9');
      await page.getByLabel('Domain').fill('taken');
      await button(page, 'Create').click();
      // The relay's refusal stands at the field that it is about.
      await page.locator('#f-domain-error', { hasText: 'is taken' }).waitFor();
      mock.busy = 2;
      await page.getByLabel('Domain').fill('lamp');
      await page.getByLabel('Domain').press('Enter');
      await text(page, 'Published at https://lamp.relay.example').waitFor();
      await page.getByRole('link', { name: 'https://lamp.relay.example' }).waitFor();
      await page.locator('dialog').waitFor({ state: 'detached' });
    },
    { allow: /status of (400|409)/ },
  ),

  'edit, stop and start a tunnel': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await menu(page, 't_0001', 'Edit tunnel');
    await page.getByLabel('Local port').fill('3001');
    await button(page, 'Save').click();
    await row(page, 't_0001').getByText('127.0.0.1:3001').waitFor();
    await row(page, 't_0001').getByRole('button', { name: 'Stop' }).click();
    await row(page, 't_0001').getByText('Stopped').waitFor();
    await row(page, 't_0001').getByRole('button', { name: 'Start' }).click();
    await row(page, 't_0001').getByText('Running').waitFor();
    // A declared tunnel offers neither change nor deletion.
    await row(page, 't_0004').getByRole('button', { name: /^More/ }).click();
    assert.equal(await page.getByRole('menuitem', { name: 'Delete' }).count(), 0);
    assert.ok(await row(page, 't_0004').getByRole('button', { name: 'Stop' }).isDisabled());
  }),

  'delete a tunnel, and think again': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await menu(page, 't_0002', 'Delete');
    await row(page, 't_0002').waitFor({ state: 'detached' });
    await button(page, 'Undo').click();
    await row(page, 't_0002').waitFor();
    assert.ok(!mock.seen.includes('DELETE tunnels/t_0002'), 'an undone deletion was sent');
    await menu(page, 't_0006', 'Delete');
    await row(page, 't_0006').waitFor({ state: 'detached' });
    await until('the deletion', () => !mock.tunnels.has('t_0006'));
    assert.ok(mock.tunnels.has('t_0002'));
  }),

  'what others change shows at once': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await row(page, 't_0001').waitFor();
    mock.setTunnel(tunnel(50, { name: 'from-elsewhere' }), 'created');
    await text(page, 'from-elsewhere').waitFor();
    mock.setStatus({ state: 'reconnecting', connected: false, last_error: 'no route to host' });
    await page.goto(`${mock.url}/#/overview`);
    await text(page, 'no route to host').waitFor();
    await page.getByRole('link', { name: 'Run diagnostics' }).waitFor();
  }),

  'QR code, copy, and back to the keyboard': scenario(async (page) => {
    await button(page, 'QR code').click();
    await page.getByRole('img', { name: 'QR code of https://shop.relay.example' }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    // Who uses the keyboard goes on where the dialog was opened.
    await page.locator('button[aria-label^="QR code"]:focus').waitFor();
    await button(page, 'Copy public URL').click();
    await button(page, 'Copied').waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, 'https://shop.relay.example');
  }),

  'a thousand tunnels, all changing': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await row(page, 't_1000').waitFor();
      await text(page, '1,000').waitFor();
      assert.ok((await page.locator('[data-tunnel]').count()) < 60, 'rows out of sight are drawn');
      const idle = await page.locator('*').count();
      assert.ok(idle < 2500, `${idle} elements for 1,000 tunnels`);
      const watched = await watchRows(page);
      const rounds = 5;
      for (let round = 1; round <= rounds; round++) {
        const state = round % 2 ? 'waiting' : 'running';
        for (const t of mock.tunnels.values()) mock.setTunnel({ ...t, state });
        // Each round is seen in the first row and, by the filter, in the last.
        await row(page, 't_1000')
          .getByText(state === 'waiting' ? 'Waiting' : 'Running')
          .waitFor();
      }
      const { changes, longest, updates } = await watched();
      // 5,000 events come; what is drawn is rows in sight, once for each batch.
      assert.ok(changes > 0, 'no row was updated');
      assert.ok(changes < 60 * 4 * updates, `${changes} changes of rows in ${updates} updates`);
      assert.ok(updates < rounds * 500, `${updates} updates for ${rounds * 1000} events`);
      assert.ok(longest < 5000, `a task of ${longest} ms`);
      assert.ok((await page.locator('*').count()) < 2500, 'the page grew');
      console.log(
        `      ${idle} elements; ${rounds * 1000} events were ${updates} updates with ${changes} ` +
          `changes of rows; longest task ${Math.round(longest)} ms`,
      );
      await page.getByLabel('State').selectOption({ label: 'Waiting' });
      await page.getByLabel('Search tunnels').fill('service-1999');
      await row(page, 't_1999').getByText('Waiting').waitFor();
      assert.equal(await page.locator('[data-tunnel]').count(), 1);
      mock.setTunnel({ ...tunnel(1999), state: 'failed', error: 'nothing listens' });
      await text(page, 'No matching tunnels').waitFor();
      await button(page, 'Reset filters').click();
      await row(page, 't_1000').hover();
      await page.mouse.wheel(0, 1e6);
      await row(page, 't_1999').getByText('Failed').waitFor();
    },
    {
      prepare: (mock) => {
        mock.tunnels = new Map(
          Array.from({ length: 1000 }, (_, i) => tunnel(1000 + i)).map((t) => [t.id, t]),
        );
      },
    },
  ),

  'who is let in: set, kept secret, and read only where operator or adit.toml say so': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      const openPolicy = async () => {
        await row(page, 't_0001').getByRole('button', { name: /^More/ }).click();
        await page.getByRole('menuitem', { name: 'Who may visit' }).click();
        await page.getByRole('heading', { name: 'Who may visit shop' }).waitFor();
      };
      await openPolicy();
      await button(page, 'Add user').click();
      await page.getByLabel('Name', { exact: true }).fill('ann');
      await page.getByLabel('Password', { exact: true }).fill('correct horse');
      await page.getByLabel('Refused addresses').fill('nonsense');
      await page.getByLabel('Largest request body').fill('much');
      await button(page, 'Save policy').click();
      await text(page, 'This is not a number').waitFor();
      assert.equal(mock.policies.size, 0, 'nothing was sent while a number is none');
      await page.getByLabel('Largest request body').fill('10 MiB');
      await button(page, 'Save policy').click();
      await page.locator('#p-deny-error').waitFor();
      await page.getByLabel('Refused addresses').fill('192.0.2.0/24');
      await button(page, 'Save policy').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(mock.policies.get('t_0001'), {
        deny: ['192.0.2.0/24'],
        max_body: 10 * 1024 ** 2,
        basic_auth: [{ name: 'ann', password: 'correct horse' }],
      });
      await openPolicy();
      await page.getByLabel('Name', { exact: true }).waitFor();
      assert.equal(await page.getByLabel('Password', { exact: true }).inputValue(), '');
      assert.ok(!(await page.content()).includes('correct horse'), 'a password is in the page');
      // Who is saved without a new password keeps the old one.
      await button(page, 'Save policy').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(mock.policies.get('t_0001')?.basic_auth, [{ name: 'ann' }]);
      for (const [change, why] of [
        [() => (mock.declaresPolicies = true), 'adit.toml controls who may visit this tunnel'],
        [
          () => Object.assign(mock, { mayGuard: false, declaresPolicies: false }),
          'operator controls who may visit',
        ],
      ] as const) {
        change();
        await openPolicy();
        await text(page, why).waitFor();
        assert.ok(await page.getByLabel('Refused addresses').isDisabled());
        assert.equal(await page.getByRole('button', { name: 'Save policy' }).count(), 0);
        await page.keyboard.press('Escape');
        await page.locator('dialog').waitFor({ state: 'detached' });
      }
      // Addresses alone for what has no HTTP.
      await row(page, 't_0003').getByRole('button', { name: /^More/ }).click();
      await page.getByRole('menuitem', { name: 'Who may visit' }).click();
      await page.getByLabel('Refused addresses').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Add user' }).count(), 0);
    },
    { allow: /status of 400/ },
  ),

  'the inspector at 10,000 requests': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/inspector`);
      await text(page, '10,000').waitFor();
      assert.ok((await page.getByRole('option').count()) < 80, 'rows out of sight are drawn');
      const slowest = await slowestFrame(page, async () => {
        for (let i = 0; i < 500; i++) mock.addRequest({ path: '/fresh' });
        await page.getByRole('option', { name: '/fresh' }).first().waitFor();
        await page.mouse.move(600, 500);
        await page.mouse.wheel(0, 100_000);
        await page.getByLabel('Search path, host, visitor').fill('webhooks');
        await page.getByRole('option', { name: '/webhooks' }).first().waitFor();
      });
      assert.ok(slowest < 5000, `the page stood still for ${slowest} ms`);
      console.log(`      longest time between two frames: ${Math.round(slowest)} ms`);
      const list = page.getByRole('listbox');
      await list.focus();
      await page.keyboard.press('End');
      await page.locator('[role=option][aria-selected=true]').waitFor();
      await page.keyboard.press('Home');
      await page.getByRole('region', { name: 'Details of the request' }).waitFor();
      await page.keyboard.press('Escape');
      await page
        .getByRole('region', { name: 'Details of the request' })
        .waitFor({ state: 'detached' });
    },
    {
      prepare: (mock) => (mock.requests = Array.from({ length: 10_000 }, (_, i) => summary(i + 1))),
    },
  ),

  'inspect, replay, edit and replay': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/inspector/r_37`);
    await page.getByText('"Grubenlampe"').waitFor();
    await page.getByText('hidden', { exact: true }).first().waitFor();
    await button(page, 'Show secrets').click();
    await page.getByText('session=none').waitFor();
    await button(page, 'cURL').click();
    await text(page, 'Copied as a cURL command.').waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl -X/);
    await button(page, 'Replay').click();
    await text(page, 'Sent again.').waitFor();
    await until('the replay', () => mock.seen.includes('POST requests/r_37/replay'));
    await button(page, 'Edit and replay').click();
    await page.getByLabel('Headers', { exact: true }).fill('not a header');
    await page.getByText('Line 1 is not').waitFor();
    await page.getByLabel('Headers', { exact: true }).fill('Accept: */*');
    await page.getByLabel('Path', { exact: true }).fill('/edited?dry=1');
    await button(page, 'Send').click();
    await page.getByRole('option', { name: '/edited?dry=1' }).waitFor();
  }),

  'the messages of a WebSocket, as they come': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/inspector/r_socket`);
      const list = page.getByRole('list', { name: 'Messages' });
      await list.getByText('{"hello":"world"}').waitFor();
      await list.getByText('abc').waitFor(); // of what is not text
      mock.said?.push({ ...said, type: 'close', text: '1000 bye \u202e' });
      await list.getByText('Ends the connection 1000 bye \\u202e').waitFor();
      assert.match((await list.getByRole('listitem').first().textContent()) ?? '', /Ends/);
      await page.getByRole('radio', { name: 'Response' }).click();
      await page.getByText('HTTP/1.1 101 Switching Protocols').waitFor();
    },
    {
      prepare: (mock) =>
        (mock.said = [
          { ...said, from: 'visitor', text: '{"hello":"world"}' },
          { ...said, type: 'binary', base64: btoa('abc') },
          { ...said, unread: true },
        ]),
    },
  ),

  'HAR out and in, then clear': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/inspector`);
    await page.locator('#r-r_40').waitFor();
    const download = page.waitForEvent('download');
    await button(page, 'Export as HAR').click();
    assert.equal((await download).suggestedFilename(), 'adit.har');
    const pick = (name: string, body: string) =>
      page.locator('input[type=file]').setInputFiles({
        name,
        mimeType: 'application/json',
        buffer: Buffer.from(body),
      });
    await pick('notes.txt', 'hello');
    await text(page, 'is not a HAR file').waitFor();
    await pick('site.har', '{"log":{"version":"1.2","creator":{},"entries":[]}}');
    await page.getByRole('option', { name: '/imported' }).waitFor();
    await button(page, 'Clear the list').click();
    await page.getByRole('button', { name: 'Clear', exact: true }).click();
    await text(page, 'No requests yet').waitFor();
    await until('the clearing', () => mock.requests.length === 0);
  }),

  'logs: live, by level, by text': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/logs`);
    await page.getByText('origin does not answer').first().waitFor();
    mock.emit('log', {
      time: new Date().toISOString(),
      level: 'error',
      message: 'a fresh line',
      fields: { answer: 42 },
    });
    await page.getByText('a fresh line').waitFor();
    await page.getByLabel('Level').selectOption({ label: 'Errors only' });
    await page.getByText('session is up').first().waitFor({ state: 'detached' });
    await page.getByLabel('Search the log').fill('answer=42');
    await counts(page.locator('[role=log] .line'), 1);
  }),

  'pause, resume, sign out': scenario(async (page) => {
    await button(page, 'Pause').click();
    await text(page, 'Nothing is reachable from outside').waitFor();
    await button(page, 'Resume').click();
    await text(page, 'Your tunnels are reachable').waitFor();
    await page.getByRole('link', { name: 'Settings' }).click();
    await button(page, 'Sign out of the relay').click();
    await page.locator('dialog').getByRole('button', { name: 'Sign out of the relay' }).click();
    await page.getByRole('heading', { name: 'Connect this machine' }).waitFor();
  }),

  'the daemon is killed, and comes back': scenario(
    async (page, mock) => {
      await followed(page, mock);
      await mock.stop();
      await text(page, 'The adit daemon does not answer.').waitFor();
      await text(page, 'shop.relay.example').waitFor();
      // Nothing may claim to be reachable now.
      await text(page, 'Your tunnels are reachable').waitFor({ state: 'detached' });
      mock.renew();
      mock.tunnels.set('t_0099', tunnel(99, { name: 'after-restart' }));
      await mock.start();
      await text(page, 'The adit daemon does not answer.').waitFor({ state: 'detached' });
      await page.getByRole('link', { name: 'https://after-restart.relay.example' }).waitFor();
      mock.setTunnel(tunnel(100, { name: 'live-again' }), 'created');
      await page.getByRole('link', { name: 'https://live-again.relay.example' }).waitFor();
    },
    { allow: /ERR_|net::/ },
  ),

  'the daemon dies while the page loads': scenario(
    async (page, mock) => {
      await text(page, 'The adit daemon does not answer.').waitFor();
      await mock.start();
      await page.getByRole('link', { name: 'https://shop.relay.example' }).waitFor();
    },
    { prepare: (mock) => (mock.dieAt = 'GET tunnels'), allow: /ERR_|net::/ },
  ),

  'a broken connection loses no event': scenario(
    async (page, mock) => {
      await followed(page, mock);
      await mock.stop();
      await text(page, 'The adit daemon does not answer.').waitFor();
      mock.setTunnel(tunnel(60, { name: 'while-away' }), 'created');
      const lists = mock.seen.filter((line) => line === 'GET tunnels').length;
      await mock.start();
      await page.getByRole('link', { name: 'https://while-away.relay.example' }).waitFor();
      const after = mock.seen.filter((line) => line === 'GET tunnels').length;
      assert.equal(after, lists, 'the same daemon is resumed, not loaded anew');
    },
    { allow: /ERR_|net::/ },
  ),

  'Bearer protection': scenario(
    async (page) => {
      await text(page, 'This page is protected').waitFor();
      await page.getByLabel('Bearer token').fill('wrong');
      await button(page, 'Unlock').click();
      await text(page, 'not the Bearer token in force').waitFor();
      await page.getByLabel('Bearer token').fill('open-sesame');
      await button(page, 'Unlock').click();
      await text(page, 'Your tunnels are reachable').waitFor();
      await page.reload();
      await text(page, 'Your tunnels are reachable').waitFor();
    },
    { prepare: (mock) => (mock.bearer = 'open-sesame'), allow: /status of 401/ },
  ),

  'the keyboard alone': scenario(async (page) => {
    await text(page, 'Your tunnels are reachable').waitFor();
    await page.keyboard.press('Tab');
    await page.getByRole('link', { name: 'Skip to content' }).press('Enter');
    await page.locator('#main:focus').waitFor();
    await page.getByRole('link', { name: 'Tunnels' }).press('Enter');
    await page.getByRole('heading', { name: 'Tunnels' }).waitFor();
    await button(page, 'New tunnel').press('Enter');
    // The one thing to type has the focus already.
    await page.keyboard.type('5000');
    await page.keyboard.press('Enter');
    await text(page, 'Published at').waitFor();
    await row(page, 't_0001').getByRole('button', { name: /^More/ }).press('Enter');
    const focused = (name: string) =>
      page.locator('[role=menuitem]:focus', { hasText: name }).waitFor();
    await focused('Edit tunnel');
    await page.keyboard.press('ArrowDown');
    await focused('Who may visit');
    await page.keyboard.press('ArrowDown');
    await focused('QR code');
    await page.keyboard.press('ArrowDown');
    await focused('Show its requests');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Inspector' }).waitFor();
  }),
};

/** Runs something and returns the longest time between two frames meanwhile. */
async function slowestFrame(page: Page, run: () => Promise<void>): Promise<number> {
  // As text: a compiled function would call what only this process has.
  await page.evaluate(`{
    let last = performance.now();
    window.slowest = 0;
    requestAnimationFrame(function tick(now) {
      window.slowest = Math.max(window.slowest, now - last);
      last = now;
      requestAnimationFrame(tick);
    });
  }`);
  await run();
  return page.evaluate(() => (window as unknown as { slowest: number }).slowest);
}

/** Counts, from now on, what is done to the rows of tunnels; returns how to read it. */
async function watchRows(page: Page) {
  // As text: a compiled function would call what only this process has.
  await page.evaluate(`{
    const seen = (window.rows = { changes: 0, updates: 0, longest: 0 });
    new MutationObserver((list) => {
      seen.updates++;
      seen.changes += list.length;
    }).observe(document.querySelector('[role=list][aria-label=Tunnels]'), {
      subtree: true, childList: true, characterData: true, attributes: true,
    });
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) seen.longest = Math.max(seen.longest, task.duration);
    }).observe({ type: 'longtask' });
  }`);
  return () =>
    page.evaluate(
      () =>
        (window as unknown as { rows: { changes: number; updates: number; longest: number } }).rows,
    );
}
