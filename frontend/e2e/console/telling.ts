/** What the console tells of times and requests, to whoever reads it. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { cutOff, textSize } from '../browser';
import type { ConsoleMock } from './mock';
import { button, row, scenario, text } from './scenarios';
import { stops } from './tour';

const paths = [
  '/assets/app-5f3a9c17.js',
  '/api/v2/organizations/7f3aQx/projects/adit/pipelines/latest?branch=feature%2Fconsole&per_page=100&page=3',
  `/search?q=${'tunnel+'.repeat(60)}`,
];
const manyPaths = (mock: ConsoleMock) =>
  mock.events.forEach((e, i) =>
    Object.assign(e, {
      path: paths[i % paths.length],
      visitor: i % 7 ? e.visitor : '2001:db8:85a3:8d3:1319:8a2e:370:7348',
    }),
  );

/** Returns the lines in which requests are shown, as they end. */
const lines = (page: Page) =>
  page.locator('.where').evaluateAll((all) =>
    all.slice(0, 30).flatMap((where) => {
      const found: { text: string; top: number }[] = [];
      const walker = document.createTreeWalker(where, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (let i = 0; i < (node.textContent ?? '').length; i++) {
          const range = document.createRange();
          range.setStart(node, i);
          range.setEnd(node, i + 1);
          const { top } = range.getBoundingClientRect();
          const line = found.at(-1);
          if (line && Math.abs(line.top - top) < 4) line.text += range.toString();
          else found.push({ text: range.toString(), top });
        }
      return [found.map((l) => l.text)];
    }),
  );

export const scenarios = {
  'what NATS has lost is told first': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/overview`);
    await text(page, 'Connected agents').waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
    for (const [store, words] of [
      ['silent', 'Parts of the store do not answer'],
      ['lost', 'adit relay restore'],
      ['away', 'cannot reach its store'],
    ] as const) {
      mock.status.store = store;
      await page.reload();
      const told = page.getByRole('alert');
      await told.waitFor();
      assert.ok((await told.innerText()).includes(words), store);
    }
  }),

  'a line of the access log ends where an address may': scenario(
    async (page, mock) => {
      for (const width of [1280, 1360, 1440, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${mock.url}/#/access`);
        await page.locator('.where').first().waitFor();
        assert.deepEqual(await cutOff(page), [], `the log is cut off at ${width}`);
        for (const [first = '', ...rest] of await lines(page)) {
          if (first.includes('search')) continue;
          for (const [i, line] of rest.entries()) {
            const before = [first, ...rest][i] ?? '';
            assert.ok(
              /[/?&-]$/.test(before) || /^[?&]/.test(line),
              `at ${width} a line ends amid a word: ${before} | ${line}`,
            );
          }
          if (first.includes('/assets/')) assert.equal(rest.length, 0, `${first} at ${width}`);
        }
        // A status takes no more room than it needs.
        const column = await page.locator('th', { hasText: 'Status' }).boundingBox();
        assert.ok(column && column.width < 90, `${column?.width} pixels for a status`);
      }
    },
    { prepare: manyPaths },
  ),

  'a request that is cut short is told whole': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/access`);
      const cut = page.locator('.where button').first();
      await cut.waitFor();
      await page.locator('main').focus();
      const whole = page.getByRole('tooltip', { name: `shop.relay.example${paths[2]}` });
      for (let n = 0; n < 30 && (await whole.count()) === 0; n++) await page.keyboard.press('Tab');
      assert.equal(await whole.count(), 1, 'the Tab key comes to it');
      await page.keyboard.press('Escape');
      await whole.waitFor({ state: 'detached' });
      await cut.hover();
      await whole.waitFor();
    },
    { prepare: manyPaths },
  ),

  'exact times are told to the keyboard': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/policies`);
    await row(page, 'tcp.20001').getByRole('link').focus();
    await page.keyboard.press('Tab');
    const exact = page.getByRole('tooltip', { name: / UTC\+0$/ });
    await exact.waitFor();
    await page.locator('button:has(time):focus-visible').waitFor();
    // Pressing keeps it, and puts it away.
    await page.keyboard.press('Enter');
    await exact.waitFor();
    await page.keyboard.press('Enter');
    await exact.waitFor({ state: 'detached' });
    for (const one of ['overview', 'clients', 'domains', 'access', 'nodes', 'settings']) {
      await page.goto(`${mock.url}/#/${one}`);
      await page.locator('td').first().waitFor();
      assert.equal(await page.locator('[title]').count(), 0, one);
    }
  }),

  'what became of each node is told': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/nodes`);
    const told = { n_0: 'Running', n_2: 'Draining', n_3: 'Not reached', n_4: /Lost\s*\d+m/ };
    for (const [id, state] of Object.entries(told))
      await row(page, id).locator('td').nth(1).filter({ hasText: state }).waitFor();
  }),

  'exact times are told to a finger': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${mock.url}/#/policies`);
      await row(page, 'tcp.20001').locator('time').tap();
      await page.getByRole('tooltip', { name: / UTC\+0$/ }).waitFor();
      await page.getByRole('heading', { name: 'Policies' }).first().tap();
      await page.getByRole('tooltip').waitFor({ state: 'detached' });
    },
    { touch: true },
  ),

  'what is told in a dialog goes before the dialog': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/clients/shop`);
    const dialog = page.locator('dialog');
    await dialog.locator('dl').first().waitFor();
    await dialog.getByRole('button', { name: 'Close' }).hover();
    const name = dialog.getByRole('tooltip', { name: 'Close' });
    await name.waitFor();
    await page.keyboard.press('Escape');
    await name.waitFor({ state: 'detached' });
    assert.equal(await dialog.count(), 1);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  }),

  'text twice as large on a phone': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      // By the browser's setting, and by what enlarges text alone.
      for (const way of ['setting', 'root'] as const) {
        if (way === 'setting') await textSize(page, 32);
        else await textSize(page, 16);
        for (const [name, hash, ready] of stops) {
          if (!hash) continue;
          await page.goto(`${mock.url}/${hash}`);
          await page.locator(ready).first().waitFor();
          if (way === 'root')
            await page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
          assert.deepEqual(await cutOff(page), [], `${name} is cut off (${way})`);
        }
        await page.goto(`${mock.url}/#/policies/shop.relay.example`);
        await page.locator('#x-address').fill('203.0.113.7');
        await button(page, 'Explain').click();
        await text(page, 'Decided').or(page.locator('.verdict')).first().waitFor();
        assert.deepEqual(await cutOff(page), [], `the explanation is cut off (${way})`);
      }
    },
    { touch: true },
  ),

  'on a phone the log comes before what one may look for': scenario(
    async (page, mock) => {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${mock.url}/#/access`);
      const first = page.locator('[data-row^=a_]').first();
      await first.waitFor();
      const box = await first.boundingBox();
      assert.ok(box && box.y + box.height < 844, `the first request is at ${box?.y}`);
      await page.getByText('Filters').tap();
      await page.getByLabel('Host').fill('shop');
      await button(page, 'Search').tap();
      await page.waitForURL(/host=shop/);
      assert.equal(await page.getByLabel('Host').isVisible(), true, 'they stay open');
    },
    { touch: true },
  ),

  'names and versions stay whole among clients': scenario(async (page, mock) => {
    for (const width of [1280, 1360, 1920]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${mock.url}/#/clients`);
      const cell = row(page, 'old-laptop').getByText('darwin/amd64');
      await cell.waitFor();
      for (const one of [cell, row(page, 'workshop-nas').getByRole('link').first()]) {
        const lines = await one.evaluate((e) => {
          const range = document.createRange();
          range.selectNodeContents(e);
          return new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size;
        });
        assert.equal(lines, 1, `${await one.innerText()} at ${width}`);
      }
      assert.deepEqual(await cutOff(page), [], `the clients at ${width}`);
    }
  }),

  'a name turns no text around': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/settings`);
      const tokens = page.getByRole('table', { name: 'API tokens' });
      await tokens.getByText('gpj.\\u202eexe').waitFor();
      await tokens.getByRole('button', { name: 'Delete the token gpj.\\u202eexe' }).click();
      await page.getByRole('heading', { name: 'Delete the token gpj.\\u202eexe' }).waitFor();
      assert.equal((await page.locator('#app').innerHTML()).includes('\u202e'), false);
    },
    { prepare: (mock) => void Object.assign(mock.tokens[0] ?? {}, { name: 'gpj.\u202Eexe' }) },
  ),

  'a date that is half typed is not passed over': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/access`);
    await page.locator('[data-row^=a_]').first().waitFor();
    const since = page.getByLabel('From', { exact: true });
    await since.focus();
    await page.keyboard.type('0102');
    const asked = mock.seen.length;
    // Neither by the button nor by what is asked for at once.
    await page.getByLabel('Status', { exact: true }).selectOption('5xx');
    await text(page, 'Enter the whole date and time').waitFor();
    assert.equal(new URL(page.url()).hash, '#/access');
    await button(page, 'Search').click();
    await page.locator('#f-since:focus[aria-invalid=true]').waitFor();
    assert.equal(new URL(page.url()).hash, '#/access');
    assert.ok(!mock.seen.slice(asked).includes('GET access'), 'nothing was asked for');
    await since.fill('2026-01-02T03:04');
    await text(page, 'Enter the whole date and time').waitFor({ state: 'detached' });
    await button(page, 'Search').click();
    await page.waitForURL(/status=5xx/);
    assert.match(page.url(), /since=2026-01-02T03/);
  }),
};
