/** What an operator does with the console, one thing at a time. */
import assert from 'node:assert/strict';
import type { Browser, Page } from 'playwright-core';
import { counts, cutOff, has, open, textSize } from '../browser';
import { ConsoleMock, password, setupCode } from './mock';
import { stops } from './tour';

type Scenario = (page: Page, mock: ConsoleMock) => Promise<void>;
interface Setting {
  prepare?: (mock: ConsoleMock) => void;
  /** What the browser may complain of: it calls every refused request an error. */
  allow?: RegExp;
  /** The reader's time zone, if it matters. */
  zone?: string;
  lang?: string;
  /** There are fingers. */
  touch?: boolean;
}

export function scenario(
  run: Scenario,
  { prepare, allow, zone, lang = 'en', touch }: Setting = {},
) {
  return async (browser: Browser): Promise<void> => {
    const mock = new ConsoleMock();
    prepare?.(mock);
    await mock.start();
    const { page, problems } = await open(browser, {
      viewport: { width: 1280, height: 800 },
      locale: lang,
      timezoneId: zone ?? 'UTC',
      hasTouch: touch,
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

export const text = (page: Page, wanted: string | RegExp) => page.getByText(wanted).first();
export const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name }).first();
export const row = (page: Page, key: string) => page.locator(`[data-row="${key}"]`);
const away = (prepare: Partial<ConsoleMock['session']>) => (mock: ConsoleMock) =>
  void (mock.session = { ...mock.session, signed_in: false, ...prepare });

export async function menu(page: Page, key: string, item: string): Promise<void> {
  await row(page, key).getByRole('button', { name: /^More/ }).click();
  await page.getByRole('menuitem', { name: item }).click();
}

export const scenarios = {
  'the first administrator, with every way to go wrong': scenario(
    async (page) => {
      await page.getByLabel('Set-up code').fill('wrong');
      await page.getByLabel('Name').fill('ann');
      await page.getByLabel('Password').fill('short');
      await button(page, 'Create the account').click();
      await text(page, 'The code is wrong').waitFor();
      await page.getByLabel('Set-up code').fill(setupCode);
      await button(page, 'Create the account').click();
      await page.locator('#password-error', { hasText: 'at least 10' }).waitFor();
      await page.getByLabel('Password').fill(password);
      await page.getByLabel('Password').press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    },
    { prepare: away({ setup_needed: true }), allow: /status of 40[01]/ },
  ),

  'the admin token in place of the set-up code': scenario(
    async (page) => {
      await page.getByLabel('Set-up code').fill('adit_admin_wrong');
      await page.getByLabel('Set-up code').press('Enter');
      await page.getByRole('alert').filter({ hasText: /token/ }).waitFor();
      await page.getByLabel('Set-up code').fill('adit_admin_mock');
      await page.getByLabel('Set-up code').press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    },
    { prepare: away({ setup_needed: true }), allow: /status of 401/ },
  ),

  'sign in with a second factor, and out again': scenario(
    async (page) => {
      await page.getByLabel('Name').fill('ann');
      await page.getByLabel('Password').fill('no');
      await button(page, 'Sign in').click();
      await text(page, 'Wrong name or password').waitFor();
      await page.getByLabel('Password').fill(password);
      await page.getByLabel('Password').press('Enter');
      await page.getByLabel(/Code from/).fill('000000');
      await page.getByLabel(/Code from/).press('Enter');
      await text(page, 'The code is wrong').waitFor();
      await page.getByLabel(/Code from/).fill('123456');
      await page.getByLabel(/Code from/).press('Enter');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
      await button(page, 'Sign out').click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    },
    {
      prepare: (mock) => {
        away({})(mock);
        mock.code = '123456';
      },
      allow: /status of 401/,
    },
  ),

  'a client from first token to revocation': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      await button(page, 'Add client').click();
      await page.getByLabel('Name', { exact: true }).fill('shop');
      await page.getByLabel('HTTPS', { exact: true }).check();
      await page.getByLabel('Bytes per month').fill('much');
      const add = page.locator('dialog footer').getByRole('button', { name: 'Add client' });
      await add.click();
      await text(page, 'This is not a number').waitFor();
      await page.getByLabel('Bytes per month').fill('2 TB');
      await add.click();
      await page.locator('#c-name-error', { hasText: 'already' }).waitFor();
      await page.getByLabel('Name', { exact: true }).fill('lamp');
      await add.click();
      await text(page, 'adit_mock0123456789').waitFor();
      await button(page, 'Done').click();
      await row(page, 'lamp').waitFor();
      assert.deepEqual(mock.clients.find((c) => c.name === 'lamp')?.scope, {
        types: ['https'],
        monthly_bytes: 2e12,
        over_quota: 'warn',
      });
      await menu(page, 'lamp', 'Rotate token');
      await page.locator('dialog footer').getByRole('button', { name: 'Rotate token' }).click();
      await text(page, 'adit_rotated0123456789').waitFor();
      await page.keyboard.press('Escape');
      await menu(page, 'lamp', 'Revoke');
      await page.locator('dialog footer').getByRole('button', { name: 'Revoke' }).click();
      await row(page, 'lamp').getByText('Revoked').waitFor();
    },
    { allow: /status of 400/ },
  ),

  'a policy, its faults and its explanation': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/policies/shop.relay.example`);
      await page.getByLabel('Name').first().waitFor();
      const deny = page.getByLabel('Refused addresses');
      assert.equal(await deny.inputValue(), '192.0.2.0/24\n198.51.100.9');
      await deny.fill('x');
      await button(page, 'Save policy').click();
      await page.locator('#p-deny-error', { hasText: 'not an address' }).waitFor();
      await page.locator('#p-deny:focus').waitFor();
      await deny.fill('192.0.2.0/24');
      await page.getByLabel('Bytes per second').fill('5 MB');
      await button(page, 'Wed').click();
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      const saved = mock.policies.find((p) => p.target === 'shop.relay.example')?.policy;
      assert.deepEqual(saved?.deny, ['192.0.2.0/24']);
      assert.equal(saved?.bandwidth, 5_000_000);
      assert.deepEqual(saved?.hours?.open[0]?.days, ['mon', 'tue', 'thu', 'fri']);
      assert.deepEqual(saved?.basic_auth, [{ name: 'ann' }, { name: 'bob' }]);
      await button(page, 'Explain').click();
      await page.locator('#x-address-error', { hasText: 'An address is needed' }).waitFor();
      await page.locator('#x-address:focus').waitFor();
      await page.getByLabel("Visitor's address").fill('192.0.2.8');
      await button(page, 'Explain').click();
      await text(page, '192.0.2.8 is in 192.0.2.0/24').first().waitFor();
    },
    { allow: /status of 400/ },
  ),

  'visits show as they happen, and older ones on demand': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/access`);
    await row(page, mock.events[0]?.id ?? '').waitFor();
    mock.visit({ path: '/just-now', id: 'fresh' });
    await row(page, 'fresh').waitFor();
    await button(page, 'Show more').click();
    await row(page, mock.events[40]?.id ?? '').waitFor();
    await page.getByLabel('Path begins with').fill('/just');
    await page.getByLabel('Path begins with').press('Enter');
    await row(page, mock.events[40]?.id ?? '').waitFor({ state: 'detached' });
    await row(page, 'fresh').waitFor();
    const csv = await page.getByRole('link', { name: 'CSV' }).getAttribute('href');
    assert.match(csv ?? '', /access\/export\?path=%2Fjust&format=csv$/);
  }),

  'a second factor is set up': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/settings`);
      await button(page, 'Set up').click();
      await page.locator('dialog').getByLabel('Password').fill(password);
      await button(page, 'Continue').click();
      await page.getByRole('img', { name: /QR code/ }).waitFor();
      await page.getByLabel('The code that the app shows').fill('123 456');
      await button(page, 'Turn on').click();
      await text(page, 'abcde-fghij').waitFor();
      await button(page, 'I have kept them').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      await button(page, 'Remove the second factor').waitFor();
    },
    { prepare: (mock) => void (mock.session = { ...mock.session, totp: false }) },
  ),

  'an account and an API token are added': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/settings`);
    await button(page, 'Add account').click();
    await page.getByLabel('Name', { exact: true }).fill('carl');
    await page.locator('dialog').getByLabel('Password').fill(password);
    await page.locator('dialog footer').getByRole('button', { name: 'Add account' }).click();
    await row(page, 'carl').getByText('Viewer').waitFor();
    await button(page, 'Add API token').click();
    await page.locator('#t-name').fill('ci');
    await page.locator('dialog footer').getByRole('button', { name: 'Add API token' }).click();
    await text(page, 'adit_api_mock0123456789').waitFor();
  }),

  'a viewer is offered no change': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      await row(page, 'shop').waitFor();
      assert.equal(await page.getByRole('button', { name: 'Add client' }).count(), 0);
      await row(page, 'shop').getByRole('button', { name: /^More/ }).click();
      assert.deepEqual(await page.getByRole('menuitem').allInnerTexts(), [
        'Details',
        'Show its endpoints',
        'Show its visits',
      ]);
      await page.goto(`${mock.url}/#/policies/shop.relay.example`);
      await page.locator('.days button').first().waitFor();
      assert.ok(await page.getByLabel('Refused addresses').isDisabled());
      assert.equal(await page.getByRole('button', { name: 'Save policy' }).count(), 0);
      await page.goto(`${mock.url}/#/settings`);
      await row(page, 'siem').waitFor();
      assert.equal(await page.getByText('API tokens').count(), 0);
    },
    { prepare: (mock) => void (mock.session = { ...mock.session, role: 'viewer' }) },
  ),

  'the audit log is verified': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/audit`);
    await button(page, 'Verify').click();
    await text(page, 'All 31 entries are intact').waitFor();
  }),

  'pages of what the relay has not are hidden': scenario(
    async (page) => {
      await page.getByRole('link', { name: 'Clients', exact: true }).waitFor();
      await page.getByRole('link', { name: 'Nodes' }).waitFor({ state: 'detached' });
    },
    { prepare: (mock) => void (mock.missing = ['nodes']), allow: /status of 404/ },
  ),

  'text twice as large': scenario(async (page, mock) => {
    await textSize(page, 32);
    // 320 is as narrow as the guidelines go: a window of 1280 at 400 %.
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 844 });
      for (const [name, hash, ready] of stops) {
        if (!hash) continue;
        await page.goto(`${mock.url}/${hash}`);
        await page.locator(ready).first().waitFor();
        assert.deepEqual(await cutOff(page), [], `${name} is cut off at ${width}`);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wider <= 0, `${name} is ${wider} pixels wider than ${width}`);
      }
    }
    await page.keyboard.press('Escape');
    await button(page, 'Main navigation').click();
    await button(page, 'Sign out').scrollIntoViewIfNeeded();
    assert.deepEqual(await cutOff(page), [], 'the navigation is cut off');
  }),

  'a domain that nobody uses is released': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/domains`);
    await row(page, 'shop.relay.example').waitFor();
    assert.equal(await row(page, 'shop.relay.example').getByRole('button').count(), 0);
    await button(page, 'Release demo.example.org').click();
    await text(page, 'The client old-laptop is not using it now').waitFor();
    await button(page, /^Release$/).click();
    await text(page, 'demo.example.org is free.').waitFor();
    await row(page, 'demo.example.org').waitFor({ state: 'detached' });
    assert.deepEqual([...mock.released], ['demo.example.org']);
  }),

  'a policy that did not load is not replaced by an empty one': scenario(
    async (page, mock) => {
      const policy = () =>
        structuredClone(mock.policies.find((p) => p.target === 'shop.relay.example')?.policy);
      const before = policy();
      await page.goto(`${mock.url}/#/policies/shop.relay.example`);
      await text(page, 'the store does not answer').waitFor();
      assert.equal(await button(page, 'Save policy').count(), 0);
      assert.equal(await page.getByLabel('Refused addresses').count(), 0);
      mock.away = [];
      await button(page, 'Try again').click();
      await page.getByLabel('Refused addresses').waitFor();
      assert.equal(
        await page.getByLabel('Refused addresses').inputValue(),
        '192.0.2.0/24\n198.51.100.9',
      );
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      assert.deepEqual(policy(), before);
    },
    {
      prepare: (mock) => void (mock.away = ['GET policies/shop.relay.example']),
      allow: /status of 503/,
    },
  ),

  'two administrators change one policy': scenario(
    async (page, mock) => {
      const target = 'shop.relay.example';
      const policy = () => mock.policies.find((p) => p.target === target)?.policy;
      await page.goto(`${mock.url}/#/policies/${target}`);
      await page.getByLabel('Refused addresses').fill('203.0.113.7');
      mock.set(target, { ...policy(), rate: 3, deny: ['192.0.2.9'] }, 'bob');
      await button(page, 'Save policy').click();
      const note = page.getByRole('alert').filter({ hasText: 'bob changed this in the meantime' });
      await note.getByText('Refused addresses and Rate').waitFor();
      await textSize(page, 32);
      await page.setViewportSize({ width: 390, height: 844 });
      assert.deepEqual(await cutOff(page), [], 'with what others changed');
      assert.equal(policy()?.rate, 3);
      await button(page, 'Load theirs, keep my changes').click();
      await text(
        page,
        'You both changed these, and your version is shown: Refused addresses',
      ).waitFor();
      await has(page.getByLabel('Requests per second'), '3');
      assert.equal(await page.getByLabel('Refused addresses').inputValue(), '203.0.113.7');
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      assert.equal(policy()?.rate, 3);
      assert.deepEqual(policy()?.deny, ['203.0.113.7']);

      await page.getByLabel('Requests per second').fill('4');
      mock.set(target, undefined, 'bob');
      await button(page, 'Save policy').click();
      await text(page, 'bob deleted this in the meantime').waitFor();
      await button(page, 'Keep mine').click();
      await button(page, 'Save policy').click();
      await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'));
      await page.getByRole('alert').waitFor({ state: 'detached' });
      assert.equal(policy()?.rate, 4);
      assert.deepEqual(policy()?.deny, ['203.0.113.7']);

      await page.getByLabel('Requests per second').fill('5');
      mock.set(target, { rate: 6 }, 'ann');
      await button(page, 'Save policy').click();
      await text(page, 'You, in another window, changed').waitFor();
      await button(page, 'Discard mine').click();
      await has(page.getByLabel('Requests per second'), '6');
      await has(page.getByLabel('Refused addresses'), '');
    },
    { allow: /status of 4(12|04)/ },
  ),

  'leaving a policy that is not saved is asked about': scenario(async (page, mock) => {
    const stays = async () => {
      await page.locator('dialog', { hasText: 'Leave without saving?' }).waitFor();
      await button(page, 'Cancel').click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.equal(await page.getByLabel('Refused addresses').inputValue(), '203.0.113.7');
      assert.match(page.url(), /#\/policies\/shop\.relay\.example$/);
    };
    await page.getByRole('link', { name: 'Nodes' }).click();
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('link', { name: 'shop.relay.example' }).click();
    const deny = page.getByLabel('Refused addresses');
    const before = await deny.inputValue();
    await deny.fill('203.0.113.7');
    await page.getByRole('link', { name: 'Audit log' }).click();
    await stays();
    await page.goBack();
    await stays();
    await page.locator('header').getByRole('button', { name: 'Policies' }).click();
    await stays();
    await button(page, 'Sign out').click();
    await stays();
    const asked = page.waitForEvent('dialog');
    void page.reload().catch(() => undefined);
    const dialog = await asked;
    assert.equal(dialog.type(), 'beforeunload');
    await dialog.dismiss();
    await page.goBack();
    await page.locator('dialog').getByRole('button', { name: 'Leave' }).click();
    await row(page, 'tcp.20001').waitFor();
    await page.goForward();
    assert.equal(await deny.inputValue(), before);
    // What was typed and taken back is no change.
    await deny.fill('203.0.113.7');
    await deny.fill(before);
    await page.getByRole('link', { name: 'Audit log' }).click();
    await row(page, '31').waitFor();
    assert.equal(mock.seen.filter((asked) => asked.startsWith('PUT')).length, 0);
  }),

  'what a link shows in detail is closed by one step back': scenario(async (page) => {
    await page.getByRole('link', { name: 'Clients', exact: true }).click();
    await row(page, 'shop').getByRole('link').first().click();
    await page.locator('dialog dl').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.goBack();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  }),

  'what went wrong in a dialog is told in it': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      await menu(page, 'shop', 'Rotate token');
      await page.locator('dialog footer').getByRole('button', { name: 'Rotate token' }).click();
      const told = page.locator('.toast', { hasText: 'the store does not answer' });
      // Nothing covers it, and it can be dismissed.
      await told.getByRole('button', { name: 'Dismiss' }).click({ timeout: 20_000 });
      await told.waitFor({ state: 'detached' });
      await page.keyboard.press('Escape');
      await page.setViewportSize({ width: 390, height: 844 });
      await menu(page, 'shop', 'Change permissions and limits');
      await page.locator('dialog footer').getByRole('button', { name: 'Save' }).click();
      await page.locator('dialog').waitFor({ state: 'detached' });
      await page.locator('.toast', { hasText: 'Saved' }).waitFor();
    },
    { prepare: (mock) => void (mock.away = ['POST clients/shop/rotate']), allow: /status of 503/ },
  ),

  'the label of a chart is clear of what is drawn': scenario(async (page) => {
    await row(page, 's_0').waitFor();
    const room = await page.evaluate(() =>
      [...document.querySelectorAll('svg[role=img]')].map((drawing) => {
        const label = drawing.closest('.chart')?.querySelector('.top');
        const below = (label as Element).getBoundingClientRect().bottom;
        return drawing.getBoundingClientRect().top - below;
      }),
    );
    assert.equal(room.length, 2);
    assert.ok(Math.min(...room) >= 0, `the drawings begin ${room.join(' and ')} below`);
  }),

  'a secret that is shown once stays until it was kept': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/clients`);
    await button(page, 'Add client').click();
    await page.getByLabel('Name', { exact: true }).fill('carl');
    // A press beside a form takes nothing of what was typed.
    await page.mouse.click(4, 4);
    await page.locator('dialog footer').getByRole('button', { name: 'Add client' }).click();
    await text(page, /^adit_mock/).waitFor();
    await page.mouse.click(4, 4);
    await button(page, 'Done').click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    // What is only read closes so.
    await page.goto(`${mock.url}/#/clients/shop`);
    await page.locator('dialog dl').first().waitFor();
    await page.mouse.click(4, 4);
    await page.locator('dialog').waitFor({ state: 'detached' });
  }),

  'long names and errors leave everything in reach': scenario(
    async (page, mock) => {
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 });
        await page.goto(`${mock.url}/#/clients`);
        await row(page, 'c'.repeat(63)).waitFor();
        assert.deepEqual(await cutOff(page), [], `the clients at ${width}`);
        await page.goto(`${mock.url}/#/settings`);
        await text(page, 'connection refused').waitFor();
        assert.deepEqual(await cutOff(page), [], `the sinks at ${width}`);
        const left = await text(page, 'connection refused').evaluate(
          (e) => e.getBoundingClientRect().left,
        );
        assert.ok(left >= 0, `the error begins at ${left}`);
      }
    },
    {
      prepare: (mock) => {
        Object.assign(mock.clients[0] ?? {}, { name: 'c'.repeat(63) });
        const last_error =
          'dial tcp 203.0.113.80:443: connect: connection refused, and so was each try before it';
        Object.assign(mock.sinks[0]?.state ?? {}, { last_error });
      },
    },
  ),

  'a thousand clients': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/clients`);
      const rows = page.locator('[data-row]');
      await row(page, 'client-0').waitFor();
      await counts(rows, 200);
      await button(page, 'Show 200 more').click();
      await row(page, 'client-399').waitFor();
      await counts(rows, 400);
      await page.getByLabel('Search clients').fill('client-99');
      await row(page, 'client-999').waitFor();
      await row(page, 'client-0').waitFor({ state: 'detached' });
      await counts(rows, 11);
    },
    {
      prepare: (mock) => {
        const one = mock.clients[0];
        mock.clients = Array.from({ length: 1000 }, (_, i) => ({
          ...(one as NonNullable<typeof one>),
          name: `client-${i}`,
        }));
      },
    },
  ),

  'a relay that is away while the page loads': scenario(
    async (page) => {
      await page.route('**/api/v1/session', (route) => route.abort());
      await page.reload();
      await text(page, 'comes back by itself').waitFor();
      await page.unroute('**/api/v1/session');
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    },
    { allow: /ERR_/ },
  ),

  'a relay that dies and comes back': scenario(
    async (page, mock) => {
      await row(page, 's_0').waitFor();
      await mock.stop();
      await text(page, 'The relay does not answer').waitFor();
      // Asked for while it is away: once it is back the page may be sooner than a click.
      const asked = page.waitForRequest((request) => request.url().includes('/api/'));
      await button(page, 'Try again').click();
      await asked;
      await mock.start();
      await text(page, 'The relay does not answer').waitFor({ state: 'detached' });
    },
    { allow: /ERR_/ },
  ),
};
