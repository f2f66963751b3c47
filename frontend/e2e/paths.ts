/** A tunnel whose paths lead to local services of their own. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { Tunnel } from '../src/agent/api/types';
import { counts, has, until } from './browser';
import { tunnel, tunnelPath } from './fixtures';
import { focused } from './keyboard';
import type { Mock } from './mock';
import { scenario } from './scenarios';

const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first();
const row = (page: Page, n: number) => page.getByRole('group', { name: `Path ${n}`, exact: true });
const path = (page: Page, n: number) => row(page, n).getByLabel('Path', { exact: true });
const to = (page: Page, n: number) => row(page, n).getByLabel('Goes to');
const gone = (page: Page) => page.locator('dialog').waitFor({ state: 'detached' });

/** Saves, and returns what the page sends for it. */
async function sent(page: Page, mock: Mock, save: () => Promise<void>) {
  const before = mock.changes.length;
  await save();
  await gone(page);
  assert.equal(mock.changes.length, before + 1);
  return mock.changes[before];
}

export const scenarios = {
  'paths are added, checked and led elsewhere': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      await button(page, 'New tunnel').click();
      await page.getByLabel('Local port').fill('3000');
      await page.getByLabel('Domain').fill('lamp');
      await button(page, 'Add path').click();
      await focused(page, '[aria-label="Path 1"] input');
      // Half of a path is no mistake yet; what is left so is.
      await path(page, 1).pressSequentially('api');
      assert.equal(await row(page, 1).locator('.error').count(), 0);
      await path(page, 1).press('Tab');
      await row(page, 1).getByText('A path begins with a slash.').waitFor();
      await path(page, 1).fill('/api');
      await counts(row(page, 1).locator('.error'), 0);
      await to(page, 1).fill('8080');
      await button(page, 'Add path').click();
      await focused(page, '[aria-label="Path 2"] input');
      await path(page, 2).fill('/api');
      await to(page, 2).fill('nas.local');
      await button(page, 'Create').click();
      await row(page, 1).getByText('This path appears twice.').waitFor();
      await row(page, 2).getByText('A port or address:port').waitFor();
      await focused(page, '[aria-label="Path 1"] input[aria-invalid=true]');
      assert.ok(!mock.seen.includes('POST tunnels'), 'a mistake was sent');
      await to(page, 2).fill('https://nas.local:8443');
      await row(page, 2).getByLabel('Strip the path').check();
      await row(page, 2).getByText('/api/x is requested as /x.').waitFor();
      await row(page, 2).getByText('Host header').click();
      await row(page, 2).getByLabel('Host header').fill('nas');
      // What the daemon alone knows stands at all of them.
      await path(page, 2).fill('/refused');
      await button(page, 'Create').click();
      await page.locator('#f-paths-error', { hasText: 'not to be led away' }).waitFor();
      await page.locator('#f-paths:focus').waitFor();
      await path(page, 2).fill('/files');
      await page.locator('#f-paths-error').waitFor({ state: 'detached' });
      await button(page, 'Create').click();
      await gone(page);
      const made = [...mock.tunnels.values()].find((t) => t.domain === 'lamp');
      assert.deepEqual(made?.paths, [
        tunnelPath('/files', {
          local_ip: 'nas.local',
          local_port: 8443,
          local_scheme: 'https',
          host_header: 'nas',
          strip: true,
        }),
        tunnelPath('/api'),
      ]);
      // The list tells where they lead.
      const lamp = page.locator(`[data-tunnel=${made?.id}]`);
      await lamp.getByRole('button', { name: '2 paths' }).click();
      const told = page.getByRole('tooltip');
      await told.waitFor();
      assert.equal(
        await told.innerText(),
        '/files → https://nas.local:8443\n/api → 127.0.0.1:8080',
      );
      await page.keyboard.press('Escape');
      await page.getByLabel('Search tunnels').fill('nas.local:8443');
      await counts(page.locator('[data-tunnel]'), 2);
    },
    { allow: /status of 400/ },
  ),

  'paths are changed and removed, and sent only then': scenario(async (page, mock) => {
    const edit = async () => {
      await page.goto(`${mock.url}/#/tunnels/t_0002`);
      await row(page, 2).waitFor();
    };
    await edit();
    await has(path(page, 1), '/assets/images');
    await has(to(page, 1), 'https://nas.local:8443');
    await has(row(page, 2).getByLabel('Host header'), 'chat.internal:9000');
    assert.ok(await row(page, 2).getByLabel('Strip the path').isChecked());
    await button(page, 'Save').click();
    await gone(page);
    assert.deepEqual(mock.changes, [], 'nothing had changed');
    await edit();
    const name = await sent(page, mock, async () => {
      await page.getByLabel('Name').fill('ape');
      await button(page, 'Save').click();
    });
    assert.deepEqual(name, { name: 'ape' });
    await edit();
    const fewer = await sent(page, mock, async () => {
      await button(page, 'Remove path 1').click();
      await row(page, 2).waitFor({ state: 'detached' });
      await has(path(page, 1), '/chat');
      await to(page, 1).fill('[::1]:9001');
      await button(page, 'Save').click();
    });
    assert.deepEqual(fewer, {
      paths: [
        {
          path: '/chat',
          local_ip: '::1',
          local_port: 9001,
          host_header: 'chat.internal:9000',
          strip: true,
        },
      ],
    });
    await page.goto(`${mock.url}/#/tunnels/t_0002`);
    const none = await sent(page, mock, async () => {
      await button(page, 'Remove path 1').click();
      await button(page, 'Save').click();
    });
    assert.deepEqual(none, { paths: [] });
    await page.locator('[data-tunnel=t_0002]').waitFor();
    assert.equal(await page.locator('[data-tunnel=t_0002]').getByText('path').count(), 0);
  }),

  'paths by the keyboard alone': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels/t_0002`);
    await row(page, 2).waitFor();
    await button(page, 'Add path').press('Enter');
    await focused(page, '[aria-label="Path 3"] input');
    await page.keyboard.type('/api');
    await page.keyboard.press('Tab');
    await page.keyboard.type('8081');
    await page.keyboard.press('Tab');
    await focused(page, '[aria-label="Path 3"] [type=checkbox]');
    await page.keyboard.press('Space');
    await page.keyboard.press('Tab');
    await focused(page, '[aria-label="Path 3"] summary');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await focused(page, '[aria-label="Path 3"] [aria-label="Host header"]');
    await page.keyboard.type('api');
    await page.keyboard.press('Tab');
    await focused(page, '[aria-label="Remove path 3"]');
    // The row below takes over from one that goes, else that above, else what adds one.
    await button(page, 'Remove path 1').press('Enter');
    await has(path(page, 1), '/chat');
    await focused(page, '[aria-label="Path 1"] [aria-label="Remove path 1"]');
    const left = await sent(page, mock, async () => {
      await to(page, 2).press('Enter');
    });
    assert.deepEqual(
      left?.paths?.map((p) => [p.path, p.local_port, p.strip, p.host_header]),
      [
        ['/chat', 9000, true, 'chat.internal:9000'],
        ['/api', 8081, true, 'api'],
      ],
    );
    await page.goto(`${mock.url}/#/tunnels/t_0002`);
    await button(page, 'Remove path 2').press('Enter');
    await focused(page, '[aria-label="Remove path 1"]');
    await page.keyboard.press('Enter');
    await focused(page, '#f-paths button:has-text("Add path")');
  }),

  'many paths, and none': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/tunnels`);
      const height = async (id: string) =>
        (await page.locator(`[data-tunnel=${id}]`).boundingBox())?.height;
      await page.locator('[data-tunnel=t_0001]').getByText('31 paths').waitFor();
      assert.equal(await height('t_0001'), await height('t_0003'));
      await page.getByRole('button', { name: '31 paths' }).click();
      const told = await page.getByRole('tooltip').innerText();
      assert.equal(told.split('\n').length, 11);
      assert.match(told, /^\/part-0 → 127\.0\.0\.1:8080\n[^]*\nand 21 more$/);
      await page.goto(`${mock.url}/#/tunnels/t_0001`);
      await counts(page.locator('#f-paths [role=group]'), 31);
      await button(page, 'Add path').press('Enter');
      await focused(page, '[aria-label="Path 32"] input');
      await page.getByText('At most 32 paths.').waitFor();
      await counts(page.getByRole('button', { name: 'Add path' }), 0);
      await button(page, 'Remove path 32').press('Enter');
      await button(page, 'Add path').waitFor();
      // What is declared is only read.
      await page.goto(`${mock.url}/#/tunnels/t_0004`);
      await has(path(page, 1), '/search');
      assert.ok(await path(page, 1).isDisabled());
      await counts(page.locator('#f-paths').getByRole('button'), 0);
      // No HTTP, no paths; and a daemon that does not know of them.
      await page.goto(`${mock.url}/#/tunnels/t_0003`);
      await page.getByLabel('Local port').waitFor();
      await counts(page.locator('#f-paths'), 0);
      await page.goto(`${mock.url}/#/tunnels/t_0006`);
      await page.locator('#f-paths').waitFor();
      await button(page, 'Save').click();
      await gone(page);
      // They go with the type, and come back with it.
      await button(page, 'New tunnel').click();
      await button(page, 'Add path').click();
      await page.getByRole('radio', { name: 'TCP' }).check();
      await counts(page.locator('#f-paths'), 0);
      await page.getByLabel('Local port').fill('22');
      await button(page, 'Create').click();
      await gone(page);
      await until('the tunnel', () => mock.seen.includes('POST tunnels'));
    },
    {
      prepare: (mock) => {
        const paths = Array.from({ length: 31 }, (_, i) => tunnelPath(`/part-${i}`));
        mock.tunnels.set('t_0001', tunnel(1, { name: 'shop', paths }));
        const older: Partial<Tunnel> = tunnel(6, { name: 'staging' });
        delete older.paths;
        mock.tunnels.set('t_0006', older as Tunnel);
      },
    },
  ),
};
