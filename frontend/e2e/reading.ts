/** How the page is read: what is looked for stays, and text may be larger. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { LogEntry, RequestDetail } from '../src/agent/api/types';
import { cutOff, textSize, until } from './browser';
import { guarded, mistake, summary, tunnel } from './fixtures';
import { scenario } from './scenarios';
import { stops } from './tour';

const logLine = (n: number): LogEntry => ({
  time: new Date(1_772_000_000_000 + n * 1000).toISOString(),
  level: 'info',
  message: `line ${n}`,
});

const states = {
  connecting: 'Connecting',
  reconnecting: 'Reconnecting',
  rejected: 'Token refused',
  paused: 'Paused',
};

export const scenarios = {
  'what is looked for stands in the location': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await page.getByLabel('Search tunnels').fill('service');
    await page.getByText('No matching tunnels').waitFor();
    await page.getByLabel('Search tunnels').fill('s');
    await page.getByLabel('State').selectOption('stopped');
    await page.waitForURL(/#\/tunnels\?q=s&state=stopped$/);
    await page.reload();
    await page.locator('[data-tunnel=t_0006]').waitFor();
    assert.equal(await page.locator('[data-tunnel]').count(), 1);
    assert.equal(await page.getByLabel('Search tunnels').inputValue(), 's');
    // A dialog over the list leaves it as it is, and no step behind.
    await page.getByRole('button', { name: 'New tunnel' }).click();
    await page.keyboard.press('Escape');
    await page.waitForURL(/#\/tunnels\?q=s&state=stopped$/);
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.waitForURL(/#\/logs$/);
    await page.goBack();
    await page.waitForURL(/#\/tunnels\?q=s&state=stopped$/);
    await page.goBack();
    await page.waitForURL((url) => !url.hash.startsWith('#/tunnels'));

    await page.goto(`${mock.url}/#/inspector?status=5xx&tunnel=t_0001`);
    await page.locator('[role=option]').first().waitFor();
    for (const status of await page.locator('[role=option] .status').allTextContents())
      assert.match(status, /^5/);
    await page.locator('[role=option]').first().click();
    await page.waitForURL(/#\/inspector\/r_\d+\?status=5xx&tunnel=t_0001$/);

    await page.goto(`${mock.url}/#/logs?level=error`);
    await page.locator('[role=log] .line').first().waitFor();
    assert.equal(await page.locator('[role=log] .line:not(.error)').count(), 0);
  }),

  'what is wrong stands first, and what is found is counted': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/diagnostics`);
    await page.getByRole('button', { name: 'Run diagnostics' }).click();
    await page.getByText('2 things need attention').waitFor();
    const said = await page.locator('.title .tag').allInnerTexts();
    assert.deepEqual(said, ['Warning', 'Failed', 'OK', 'OK', 'OK', 'Skipped']);
    // In other languages a name may be the first, which stays as it is written.
    const title = page.locator('.title > span:first-child');
    const drawn = await title.evaluateAll((all) =>
      all.map((e) => getComputedStyle(e, '::first-letter').textTransform),
    );
    assert.deepEqual([...new Set(drawn)], ['none']);
    assert.equal(await title.first().innerText(), 'UDP to relay.example:4433');
    await page.getByText('The address of relay.example', { exact: true }).waitFor();
    await page.goto(`${mock.url}/#/tunnels`);
    const head = page.locator('header', { has: page.getByRole('heading', { name: 'Tunnels' }) });
    await head.getByText('8', { exact: true }).waitFor();
    await page.getByPlaceholder('Search tunnels').fill('game');
    await head.getByText('1 of 8').waitFor();
  }),

  'what takes longer says so': scenario(async (page, mock) => {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((done) => (go = done));
    await page.route(/api\/v1\/(tunnels|requests|logs)\b/, async (route) => {
      await gate;
      await route.continue();
    });
    await page.reload();
    for (const [one, ready] of [
      ['overview', 'text=shop.relay.example'],
      ['tunnels', '[data-tunnel]'],
      ['inspector', '[role=option]'],
      ['logs', '[role=log]'],
    ] as const) {
      await page.goto(`${mock.url}/#/${one}`);
      await page.getByText('Loading', { exact: true }).waitFor();
      assert.equal(await page.locator(ready).count(), 0);
    }
    go();
    await page.locator('[role=log] .line').first().waitFor();
    assert.equal(await page.getByText('Loading', { exact: true }).count(), 0);
  }),

  'a log of several days tells them apart': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/logs`);
      await page.locator('[role=log] .line').nth(1).waitFor();
      assert.deepEqual(await page.locator('[role=log] .day').allTextContents(), [
        'May 4, 2026',
        'May 5, 2026',
      ]);
    },
    {
      prepare: (mock) =>
        void (mock.logs = [
          '2026-05-04T12:00:00Z',
          '2026-05-04T12:10:00Z',
          '2026-05-05T12:00:00Z',
        ].map((time) => ({ time, level: 'info', message: 'daemon starts' }))),
    },
  ),

  'a head ends where its cards end': scenario(async (page, mock) => {
    for (const width of [1280, 1920])
      for (const one of ['overview', 'diagnostics', 'settings']) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${mock.url}/#/${one}`);
        await page.locator('.scroll .card').first().waitFor();
        const [head, cards] = await page
          .locator('.scroll > .head, .scroll > :last-child')
          .evaluateAll((all) =>
            all.map(
              (e) =>
                e.getBoundingClientRect().right -
                Number.parseFloat(getComputedStyle(e).paddingRight),
            ),
          );
        assert.equal(head, cards, `${one} at ${width}`);
      }
  }),

  'the navigation stands still while the state changes': scenario(async (page, mock) => {
    const top = async () => (await page.locator('nav').boundingBox())?.y;
    await page.getByText('Your tunnels are reachable').waitFor();
    const before = await top();
    for (const state of ['connecting', 'reconnecting', 'rejected', 'paused'] as const) {
      mock.setStatus({ state, connected: false });
      await page.locator(`.brand`).getByText(states[state]).waitFor();
      assert.equal(await top(), before, state);
    }
  }),

  'a link shows the code for a phone': scenario(async (page, mock) => {
    // The tray has this one.
    await page.goto(`${mock.url}/#/tunnels/qr:t_0001`);
    const code = page.getByRole('dialog');
    await code.getByText('https://shop.relay.example').waitFor();
    await page.keyboard.press('Escape');
    await code.waitFor({ state: 'detached' });
    await page.waitForURL(/#\/tunnels$/);
  }),

  'no line of a hex dump wraps': scenario(async (page, mock) => {
    for (const [width, perLine] of [
      [1280, 16],
      [390, 8],
      [320, 4],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${mock.url}/#/inspector/r_38`);
      const dump = page.locator('.detail .dump');
      const lines = Math.ceil(300 / perLine); // the body has 300 bytes
      await until(`${perLine} bytes a line at ${width}`, () =>
        dump.evaluate(
          (e, lines) =>
            e.lastChild?.textContent?.split('\n').length === lines &&
            Math.round(e.clientHeight / Number.parseFloat(getComputedStyle(e).lineHeight)) ===
              lines &&
            e.scrollWidth <= e.clientWidth,
          lines,
        ),
      );
    }
  }),

  'a request that is no more leaves a way to the list': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${mock.url}/#/inspector/r_forgotten`);
      await page.getByRole('button', { name: 'Close' }).click();
      await page.locator('[role=option]').first().waitFor();
    },
    { allow: /status of 404/ },
  ),

  'a list is as tall as what is in it': scenario(async (page, mock) => {
    const height = async (card: string) => {
      const box = await page.locator(card).boundingBox();
      return box?.height ?? 0;
    };
    await page.goto(`${mock.url}/#/tunnels`);
    await page.locator('[data-tunnel=t_0008]').waitFor();
    assert.ok((await height('.list')) < 8 * 58 + 4, 'eight tunnels, and nothing below them');
    for (let n = 10; n < 310; n++) mock.setTunnel(tunnel(n), 'created');
    await page.getByRole('heading', { name: 'Tunnels 308' }).waitFor();
    // The page scrolls as a whole, and what finds a tunnel stays in sight.
    const far = page.locator('[data-tunnel=t_0300]');
    await page.locator('[data-tunnel=t_0001]').hover();
    await page.mouse.wheel(0, 300 * 58);
    await far.waitFor();
    assert.ok(((await page.getByLabel('Search tunnels').boundingBox())?.y ?? -1) > 0);
    const before = await far.boundingBox();
    await fetch(`${mock.url}/api/v1/tunnels/t_0020`, { method: 'DELETE' });
    await page.getByRole('heading', { name: 'Tunnels 307' }).waitFor();
    assert.deepEqual(await far.boundingBox(), before);
    await page.goto(`${mock.url}/#/logs?level=warn&q=nobody+said+this`);
    await page.locator('.empty').waitFor();
    await page.getByRole('button', { name: 'Reset filters' }).click();
    await page.locator('[role=log] .line').first().waitFor();
  }),

  'what is empty says what to do': scenario(
    async (page, mock) => {
      await page.getByText('Nothing on this machine is public now').waitFor();
      await page.goto(`${mock.url}/#/inspector`);
      await page.getByRole('link', { name: 'New tunnel' }).waitFor();
      mock.setTunnel(tunnel(1, { name: 'shop' }), 'created');
      const visit = page.getByRole('link', { name: 'Visit https://shop.relay.example' });
      assert.equal(await visit.getAttribute('href'), 'https://shop.relay.example');
      await page.goto(`${mock.url}/#/overview`);
      await page.getByText('Your tunnels are reachable').waitFor();
    },
    {
      prepare: (mock) => {
        mock.tunnels.clear();
        mock.requests = [];
      },
    },
  ),

  'text twice as large': scenario(
    async (page, mock) => {
      await textSize(page, 32);
      // 320 is as narrow as the guidelines go: a window of 1280 at 400 %.
      for (const width of [1280, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        for (const [one, hash, ready] of stops) {
          if (!hash) continue;
          await page.goto(`${mock.url}/${hash}`);
          await page.locator(ready).first().waitFor();
          assert.deepEqual(await cutOff(page), [], `${one} is cut off at ${width}`);
          const wider = await page.evaluate(
            () => document.documentElement.scrollWidth - innerWidth,
          );
          assert.ok(wider <= 0, `${one} is ${wider} pixels wider than ${width}`);
        }
        // Rows grow with their text, so none hides a part of the other.
        for (const [one, row] of [
          ['tunnels', '[data-tunnel]'],
          ['inspector', '[role=option]'],
        ] as const) {
          await page.goto(`${mock.url}/#/${one}`);
          await page.locator(row).nth(1).waitFor();
          const over = await page
            .locator(row)
            .evaluateAll((rows) => rows.filter((r) => r.scrollHeight > r.clientHeight + 2).length);
          assert.equal(over, 0, `${over} rows of ${one} are too low at ${width}`);
        }
      }
    },
    {
      prepare: (mock) => {
        mock.requests.push(summary(500, { path: '/x'.repeat(300) }));
        mock.config.error = mistake;
        mock.policies.set('t_0001', guarded);
      },
    },
  ),

  'an archive of what failed has that alone': scenario(async (page, mock) => {
    mock.addRequest({ path: '/refused', state: 'failed', status: 0 });
    await page.goto(`${mock.url}/#/inspector?status=error`);
    await page.getByRole('option', { name: '/refused' }).waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as HAR' }).click();
    const saved = JSON.parse(await readFile(await (await download).path(), 'utf8')) as {
      log: { entries: { request: { url: string } }[] };
    };
    assert.ok(saved.log.entries.length > 0);
    assert.equal(
      saved.log.entries.length,
      mock.requests.filter((r) => r.kind === 'http' && r.state === 'failed').length,
    );
  }),

  'an edited body keeps its line ends, and is said to be cut': scenario(async (page, mock) => {
    const parts = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\none\r\n--x--\r\n';
    await page.route(/\/requests\/[^/]+$/, async (route) => {
      const answer = await route.fetch();
      const { data } = (await answer.json()) as { data: RequestDetail };
      if (data.request)
        data.request.body = { ...data.request.body, text: parts, base64: '', truncated: true };
      await route.fulfill({ response: answer, json: { data } });
    });
    const r = mock.addRequest({ method: 'POST', path: '/form' });
    await page.goto(`${mock.url}/#/inspector/${r.id}`);
    await page.getByRole('button', { name: 'Edit and replay' }).click();
    await page.getByText('If you change it, it is sent exactly as shown here.').waitFor();
    const body = page.getByLabel('Body', { exact: true });
    const typed = await body.inputValue();
    await body.fill(typed.replace('one', 'two'));
    const sent = page.waitForRequest(/\/replay$/);
    await page.getByRole('button', { name: 'Send' }).click();
    assert.deepEqual((await sent).postDataJSON(), { body: parts.replace('one', 'two') });
  }),

  'a long name leaves a dialog on a phone whole': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${mock.url}/#/tunnels/policy:t_0001`);
      await page.getByLabel('Refused addresses').waitFor();
      assert.deepEqual(await cutOff(page), []);
      assert.equal(await page.locator('dialog').evaluate((e) => e.scrollLeft), 0);
    },
    { prepare: (mock) => void mock.tunnels.set('t_0001', tunnel(1, { name: 'x'.repeat(128) })) },
  ),

  'a line of the log that is read stays while others come': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/logs`);
      const line = page.getByText('line 350', { exact: true });
      await page.getByText('line 400', { exact: true }).waitFor();
      await line.scrollIntoViewIfNeeded();
      await page.getByRole('button', { name: 'Newest' }).waitFor();
      const place = async () => (await line.boundingBox())!.y;
      const before = await place();
      for (let i = 0; i < 320; i++) mock.emit('log', logLine(1000 + i));
      await page.getByRole('heading', { name: '720' }).waitFor();
      // The browser holds it in its place to a pixel.
      assert.ok(Math.abs((await place()) - before) < 1);
      await page.getByRole('button', { name: 'Newest' }).click();
      await page.getByText('line 1319', { exact: true }).waitFor();
    },
    { prepare: (mock) => (mock.logs = Array.from({ length: 400 }, (_, i) => logLine(i + 1))) },
  ),

  'lines of the log out of sight are as tall as those in sight': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/logs`);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 });
        await page.getByText('line 400', { exact: true }).waitFor();
        const heights = await page
          .locator('.line')
          .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
        assert.equal(heights.length, 300);
        const spread = Math.max(...heights) - Math.min(...heights);
        assert.ok(spread < 0.1, `${spread} px apart at ${width}`);
      }
    },
    { prepare: (mock) => (mock.logs = Array.from({ length: 400 }, (_, i) => logLine(i + 1))) },
  ),

  'a method that is long leaves the path in sight': scenario(async (page, mock) => {
    // WebDAV's, as from a network drive.
    for (const method of ['PROPPATCH', 'VERSION-CONTROL']) mock.addRequest({ method, path: '/a' });
    await page.goto(`${mock.url}/#/inspector`);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 844 });
      for (const name of ['PROPPATCH', 'VERSION-CONTROL']) {
        const method = page.locator('.method', { hasText: name });
        await method.waitFor();
        const spilt = await method.evaluate(
          (e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === 'visible',
        );
        assert.ok(!spilt, `it runs into the path at ${width}`);
      }
    }
  }),

  'what came by a tunnel that is deleted is still looked for by its name': scenario(
    async (page, mock) => {
      mock.addRequest({ tunnel_id: 't_gone', tunnel_name: 'old-shop', path: '/from-it' });
      await page.goto(`${mock.url}/#/inspector?tunnel=t_gone`);
      await page.getByRole('option', { name: '/from-it' }).waitFor();
      const chosen = page.getByLabel('Tunnel').locator('option:checked');
      assert.equal(await chosen.textContent(), 'old-shop');
    },
  ),
};
