/** What comes late, or cannot come: nobody is taken away by it, or told what is not so. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { has, until } from './browser';
import { mistake, someVisits } from './fixtures';
import { scenario } from './scenarios';

const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first();

/** Holds the answer to a request back; returns how it is let go, with the answer's end. */
export async function late(page: Page, method: string, path: RegExp): Promise<() => Promise<void>> {
  let go = () => undefined as void;
  const gone = new Promise<void>((done) => (go = done));
  let end = () => undefined as void;
  const ended = new Promise<void>((done) => (end = done));
  await page.route(path, async (route) => {
    if (route.request().method() !== method) return route.fallback();
    const answer = await route.fetch();
    await gone;
    await route.fulfill({ response: answer });
    end();
  });
  return async () => {
    go();
    await ended;
  };
}

export const scenarios = {
  'a replay that is slow takes nobody back': scenario(async (page, mock) => {
    mock.addRequest({ path: '/again' });
    await page.goto(`${mock.url}/#/inspector`);
    await page.getByRole('option', { name: '/again' }).click();
    const go = await late(page, 'POST', /\/replay$/);
    await button(page, 'Replay').click();
    await page.goto(`${mock.url}/#/tunnels/new`);
    await page.getByLabel('Local port').fill('4321');
    await go();
    await page.getByText('Sent again.').waitFor();
    await has(page.getByLabel('Local port'), '4321');
    assert.equal(new URL(page.url()).hash, '#/tunnels/new');
  }),

  'an edited replay that is slow takes nobody back': scenario(async (page, mock) => {
    mock.addRequest({ path: '/again' });
    await page.goto(`${mock.url}/#/inspector`);
    await page.getByRole('option', { name: '/again' }).click();
    const go = await late(page, 'POST', /\/replay$/);
    await button(page, 'Edit and replay').click();
    await button(page, 'Send').click();
    await page.keyboard.press('Escape');
    await page.goto(`${mock.url}/#/tunnels/new`);
    await page.getByLabel('Local port').fill('4321');
    await go();
    await page.getByText('Sent again.').waitFor();
    await has(page.getByLabel('Local port'), '4321');
  }),

  'a tunnel that is slow to be made closes nothing else': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels/new`);
    await page.getByLabel('Local port').fill('4321');
    await page.getByLabel('Domain').fill('lamp');
    const go = await late(page, 'POST', /\/tunnels$/);
    await button(page, 'Create').click();
    await page.keyboard.press('Escape');
    await page.locator('[data-tunnel=t_0001]').getByRole('button', { name: /^More/ }).click();
    await page.getByRole('menuitem', { name: 'Edit tunnel' }).click();
    await page.getByLabel('Local port').fill('4999');
    await go();
    await page.getByText('Published at https://lamp.relay.example').waitFor();
    await has(page.getByLabel('Local port'), '4999');
  }),

  'who is let in, slowly saved, closes nothing else': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels/policy:t_0001`);
    await page.getByLabel('Refused addresses').fill('192.0.2.1');
    const go = await late(page, 'PUT', /\/policy$/);
    await button(page, 'Save policy').click();
    await page.keyboard.press('Escape');
    await button(page, 'Leave').click();
    await page.getByRole('button', { name: 'More for shop' }).click();
    await page.getByRole('menuitem', { name: 'Edit tunnel' }).click();
    await page.getByLabel('Local port').fill('4999');
    await go();
    await page.getByText('Saved. The policy is now in force.').waitFor();
    await has(page.getByLabel('Local port'), '4999');
  }),

  'a tunnel without an address yet is not said to be published': scenario(async (page, mock) => {
    await page.route(/\/tunnels$/, async (route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      const answer = await route.fetch();
      const { data } = (await answer.json()) as { data: object };
      const json = { data: { ...data, state: 'waiting', public_url: '' } };
      await route.fulfill({ response: answer, json });
    });
    await page.goto(`${mock.url}/#/tunnels/new`);
    await page.getByLabel('Local port').fill('4321');
    await button(page, 'Create').click();
    await page.getByText('Created. It gets its address once the relay is connected.').waitFor();
    assert.equal(await page.getByText('Published at').count(), 0);
  }),

  'a refusal of the page is told in Chinese, too': scenario(
    async (page, mock) => {
      const message =
        'this listener does not answer to the name adit.lan; [local_api] allowed_hosts adds names';
      await page.route(/\/api\/v1\/status$/, (route) =>
        route.fulfill({ status: 403, json: { error: { code: 'forbidden_host', message } } }),
      );
      await page.goto(`${mock.url}/?again`);
      await page.getByText('此监听不响应名称 adit.lan').waitFor();
    },
    { lang: 'zh-CN', allow: /status of 403/ },
  ),

  'a daemon that has no stream to give says so': scenario(
    async (page, mock) => {
      await page.getByRole('link', { name: 'Tunnels' }).first().waitFor();
      const message = '32 event streams are open; close one first';
      await page.route(/\/events$/, (route) =>
        route.fulfill({ status: 503, json: { error: { code: 'too_many_streams', message } } }),
      );
      await page.goto(`${mock.url}/?again`);
      await page.getByText(message).waitFor();
      assert.equal(await page.getByText('does not answer').count(), 0);
    },
    { allow: /status of 503/ },
  ),

  'a Bearer token is wrong when the daemon has said so': scenario(
    async (page) => {
      let answer = () => undefined as void;
      const held = new Promise<void>((done) => (answer = done));
      await page.route(/\/api\/v1\/status$/, async (route) => {
        await held;
        await route.fallback();
      });
      await page.getByLabel('Bearer token').fill('sesame');
      await page.clock.install();
      const asked = page.waitForRequest(/\/api\/v1\/status$/);
      await button(page, 'Unlock').click();
      await asked;
      await page.clock.runFor(5000);
      assert.equal(await page.getByText('This is not the Bearer token in force.').count(), 0);
      answer();
      await page.clock.resume();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    },
    { prepare: (mock) => (mock.bearer = 'sesame'), allow: /status of 401/ },
  ),

  'the row that is read stays where it is while others come': scenario(async (page, mock) => {
    for (let i = 0; i < 60; i++) mock.addRequest({ path: `/before/${i}` });
    await page.goto(`${mock.url}/#/inspector`);
    const list = page.getByRole('listbox');
    const read = page.getByRole('option', { name: '/before/30' });
    await list.evaluate((e) => (e.scrollTop = 800));
    await read.waitFor();
    const before = await read.boundingBox();
    for (let i = 0; i < 7; i++) mock.addRequest({ path: `/later/${i}` });
    await page.getByRole('heading', { name: '107' }).waitFor();
    assert.deepEqual(await read.boundingBox(), before);
    // At the top, what is new is what one wants to see.
    await list.evaluate((e) => (e.scrollTop = 0));
    await page.getByRole('option', { name: '/later/6' }).waitFor();
    mock.addRequest({ path: '/newest' });
    await page.getByRole('option', { name: '/newest' }).waitFor();
  }),

  'a request that could not be had is there once the daemon is back': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/inspector`);
      const option = page.getByRole('option', { name: '/late' });
      mock.addRequest({ path: '/late' });
      await option.waitFor();
      await mock.stop();
      await page.getByText('The adit daemon does not answer.').waitFor();
      await option.click();
      await page.getByText('The daemon does not answer.', { exact: true }).waitFor();
      await mock.start();
      await page.getByRole('heading', { name: '/late' }).waitFor();
    },
    { allow: /ERR_/ },
  ),

  'a list that cannot be loaded says why, and comes once it can': scenario(
    async (page, mock) => {
      let broken = true;
      await page.route(/\/(requests|logs)\?/, (route) =>
        broken
          ? route.fulfill({
              status: 500,
              json: { error: { code: 'internal', message: 'the disk is on fire' } },
            })
          : route.fallback(),
      );
      await page.goto('about:blank');
      for (const [list, row] of [
        ['inspector', '#r-r_40'],
        ['logs', '[role=log] .line'],
      ] as const) {
        broken = true;
        await page.goto(`${mock.url}/#/${list}`);
        await page.reload();
        await page.getByText('Not all of this could be loaded: the disk is on fire').waitFor();
        assert.equal(await page.getByText('Loading').count(), 0, list);
        broken = false;
        await button(page, 'Try again').click();
        await page.locator(row).first().waitFor();
        assert.equal(await page.getByText('could be loaded').count(), 0, list);
      }
    },
    { allow: /status of 500/ },
  ),

  'a change whose answer is lost is not said to have failed': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await page.route(/\/stop$/, async (route) => {
        await route.fetch();
        await route.abort();
      });
      const row = page.locator('[data-tunnel=t_0001]');
      await row.getByRole('button', { name: /^Stop/ }).click();
      await page.getByText('it is not known whether this was done').waitFor();
      await row.getByText('Stopped').waitFor();
    },
    { allow: /ERR_/ },
  ),

  'a page that nobody looks at asks for nothing': scenario(
    async (page, mock) => {
      mock.visits = someVisits();
      mock.config.error = mistake;
      await page.clock.install();
      const turn = (hidden: boolean) =>
        page.evaluate((value) => {
          Object.defineProperty(document, 'hidden', { configurable: true, value });
          document.dispatchEvent(new Event('visibilitychange'));
        }, hidden);
      for (const [hash, ready] of [
        ['tunnels', '[data-visit]'],
        ['inspector/r_socket', '[aria-label=Messages]'],
      ] as const) {
        await page.goto(`${mock.url}/?${hash}#/${hash}`);
        await page.locator(ready).first().waitFor();
        await turn(true);
        await page.clock.runFor(12_000);
        const asked = mock.seen.length;
        await page.clock.runFor(60_000);
        assert.deepEqual(mock.seen.slice(asked), [], `of ${hash}`);
        await turn(false);
        await until('it asks again', () => mock.seen.length > asked);
      }
    },
    {
      prepare: (mock) =>
        (mock.said = [
          { from: 'origin', time: '2026-05-04T10:21:00Z', type: 'text', size: 2, text: 'hi' },
        ]),
    },
  ),
};
