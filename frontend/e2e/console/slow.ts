/** What comes late, out of order or not at all. */
import assert from 'node:assert/strict';
import { late } from '../slow';
import { event } from './fixtures';
import { button, menu, row, scenario, text } from './scenarios';

const entry = (seq: number, action: string, target: string) => ({
  seq,
  time: '2026-03-01T12:00:00Z',
  actor: { kind: 'user', name: 'ann' },
  action,
  target,
});

export const scenarios = {
  'a token that is made is shown though one has gone to another page': scenario(
    async (page, mock) => {
      let answer = () => undefined as void;
      const wanted = new Promise<void>((done) => (answer = done));
      await page.route(/\/clients$/, async (route) => {
        if (route.request().method() === 'POST') await wanted;
        await route.continue();
      });
      await page.goto(`${mock.url}/#/clients`);
      await button(page, 'Add client').click();
      await page.getByLabel('Name', { exact: true }).fill('kiosk');
      const asked = page.waitForRequest((r) => r.method() === 'POST');
      await page.locator('dialog').getByRole('button', { name: 'Add client' }).click();
      await asked;
      await page.evaluate(() => (location.hash = '#/nodes'));
      await page.locator('dialog').waitFor({ state: 'detached' });
      answer();
      await text(page, 'adit login adit_').waitFor();
      assert.match(page.url(), /nodes/);
      await button(page, 'Done').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
    },
  ),

  'the lists of the settings come at once, so that none pushes another away': scenario(
    async (page, mock) => {
      await page.clock.install();
      await page.clock.pauseAt(Date.now() + 1000);
      const answers = [];
      for (const list of ['accounts', 'tokens', 'sinks', 'settings'])
        answers.push(await late(page, 'GET', new RegExp(`/${list}$`)));
      await page.goto(`${mock.url}/?again#/settings`);
      const add = button(page, 'Add API token');
      for (const answer of answers) {
        await add.waitFor({ state: 'hidden' });
        await answer();
      }
      await add.waitFor();
    },
  ),

  'what there is of the settings comes after a moment, whatever else does not': scenario(
    async (page, mock) => {
      const answer = await late(page, 'GET', /\/tokens$/);
      await page.clock.install();
      await page.goto(`${mock.url}/?again#/settings`);
      await page.clock.runFor(400);
      await button(page, 'Add API token').waitFor();
      await text(page, 'Loading').first().waitFor();
      await answer();
      await text(page, 'Loading').first().waitFor({ state: 'detached' });
    },
  ),

  'a slow answer of the audit log does not replace what is looked for': scenario(
    async (page, mock) => {
      let go = () => undefined as void;
      const gone = new Promise<void>((done) => (go = done));
      await page.route(/\/audit\?/, async (route) => {
        const wanted = new URL(route.request().url()).searchParams.get('action') ?? '';
        if (wanted === 'client.') await gone;
        const items = wanted ? [entry(wanted === 'client.' ? 1 : 2, `${wanted}set`, 'shop')] : [];
        await route.fulfill({ json: { data: { items } } });
      });
      await page.goto(`${mock.url}/#/audit`);
      const kind = page.getByLabel('Action');
      const asked = page.waitForRequest(/action=client/);
      await kind.selectOption('Clients');
      await asked;
      await kind.selectOption('Policies');
      await row(page, '2').waitFor();
      const late = page.waitForResponse(/action=client/);
      go();
      await (await late).finished();
      // What comes of it is drawn with the next picture.
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
      assert.equal(await row(page, '1').count(), 0);
      assert.equal(await row(page, '2').count(), 1);
    },
  ),

  'the audit log is searched as far back as it goes': scenario(async (page, mock) => {
    await page.route(/\/audit\?/, async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const found = [entry(3, 'client.revoke', 'contractor')];
      const items = query.get('q') !== 'contractor' || query.get('before') === '3001' ? found : [];
      const next = items.length > 0 ? {} : { next: 3001 };
      await route.fulfill({ json: { data: { items, ...next } } });
    });
    await page.goto(`${mock.url}/#/audit`);
    await row(page, '3').waitFor();
    const asked = page.waitForRequest(/[?&]q=contractor&since=20[^&]+&limit=100$/);
    await page.getByLabel('Time').selectOption('Last 7 days');
    await page.getByLabel('Search').fill('contractor');
    await asked;
    await text(page, 'there are older events').waitFor();
    await button(page, 'Show more').click();
    await row(page, '3').waitFor();
  }),

  'more of the audit log that cannot be had is told': scenario(
    async (page, mock) => {
      await page.route(/\/audit\?/, async (route) => {
        const query = new URL(route.request().url()).searchParams;
        if (query.get('before'))
          return route.fulfill({
            status: 503,
            json: { error: { code: 'unavailable', message: 'the store does not answer' } },
          });
        const items = [entry(9, 'client.set', 'shop')];
        await route.fulfill({ json: { data: { items, next: 9 } } });
      });
      await page.goto(`${mock.url}/#/audit`);
      await button(page, 'Show more').click();
      await text(page, 'the store does not answer').waitFor();
      await row(page, '9').waitFor();
    },
    { allow: /status of 503/ },
  ),

  'a relay that comes back is noticed on a page that asks nothing by itself': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/access`);
      await page.getByRole('heading', { name: 'Access' }).waitFor();
      await mock.stop();
      await text(page, 'The relay does not answer').waitFor();
      await mock.start();
      await text(page, 'The relay does not answer').waitFor({ state: 'detached' });
    },
    { allow: /ERR_/ },
  ),

  'yesterday has its date once it is past midnight': scenario(async (page, mock) => {
    await page.clock.install({ time: new Date('2026-03-01T23:59:50Z') });
    mock.events = [];
    mock.visit({ time: '2026-03-01T23:59:40Z', path: '/late' });
    await page.goto(`${mock.url}/?again#/access`);
    const visit = page.getByRole('row', { name: '/late' });
    await visit.waitFor();
    assert.equal(await visit.getByText('Mar 1, 2026').count(), 0);
    await page.clock.fastForward(20_000);
    await visit.getByText('Mar 1, 2026').waitFor();
  }),

  'what came while the access log was not live is there when it is again': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/access`);
      await page.getByRole('row', { name: 'shop.relay.example' }).first().waitFor();
      await button(page, 'Live').click();
      await page.locator('.head [aria-pressed=false]').waitFor();
      mock.visit({ path: '/meanwhile' });
      await page.locator('.head [aria-pressed=false]').click();
      await page.getByRole('row', { name: '/meanwhile' }).waitFor();
    },
  ),

  'an account that is slow to be made closes nothing else': scenario(async (page, mock) => {
    const go = await late(page, 'POST', /\/accounts$/);
    await page.goto(`${mock.url}/#/settings`);
    await button(page, 'Add account').click();
    await page.getByLabel('Name').fill('berta');
    await page.getByLabel('Password').fill('a long password');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await button(page, 'Add account').click();
    await page.getByLabel('Name').fill('carl');
    await go();
    await text(page, 'Saved').waitFor();
    assert.equal(await page.getByLabel('Name').inputValue(), 'carl');
  }),

  'a change whose answer is lost is not said to have failed': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      await page.route(/\/revoke$/, async (route) => {
        await route.fetch();
        await route.abort();
      });
      await menu(page, 'shop', 'Revoke');
      await page.locator('dialog footer').getByRole('button', { name: 'Revoke' }).click();
      await text(page, 'it is not known whether this was done').waitFor();
      await row(page, 'shop').getByText('Revoked').waitFor();
    },
    { allow: /ERR_/ },
  ),

  'a relay that has gone without a word is said to be away': scenario(async (page, mock) => {
    await page.clock.install();
    await page.goto(`${mock.url}/?again#/clients`);
    await row(page, 'shop').waitFor();
    let silent = true;
    await page.route(/\/api\/v1\//, (route) => (silent ? undefined : route.fallback()));
    const asked = page.waitForRequest(/\/clients$/);
    await page.clock.runFor(5000);
    await asked;
    await page.clock.runFor(31_000);
    await text(page, 'The relay does not answer.').waitFor();
    silent = false;
    await page.clock.runFor(14_000);
    await text(page, 'The relay does not answer.').waitFor({ state: 'detached' });
  }),

  'requests that failed are looked for once, and as far back as it goes': scenario(
    async (page, mock) => {
      await page.clock.install();
      let asked = 0;
      await page.route(/\/access\?/, async (route) => {
        asked++;
        const query = new URL(route.request().url()).searchParams;
        assert.equal(query.get('status'), '5xx');
        const items = query.get('cursor') ? [event({ status: 502, path: '/older' })] : [];
        const next = query.get('cursor') ? {} : { next: '1000001' };
        await route.fulfill({ json: { data: { items, ...next } } });
      });
      await page.goto(`${mock.url}/?again#/errors`);
      await text(page, 'there are older events').waitFor();
      await page.clock.runFor(30_000);
      assert.ok(asked <= 2, `asked ${asked} times`);
      await button(page, 'Show more').click();
      await text(page, '/older').waitFor();
      mock.visit({ status: 503, path: '/newest' });
      await text(page, '/newest').waitFor();
    },
  ),
};
