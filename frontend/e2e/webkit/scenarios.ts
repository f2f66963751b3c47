/** What a person does with the pages in WebKit: what its engine has a part in. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../browser';
import { ConsoleMock, password } from '../console/mock';
import { tunnel } from '../fixtures';
import { goodToken, Mock, refusedToken, unconfigured } from '../mock';
import type { Webkit } from './driver';
import { open, wide } from './tour';

type Scenario<M> = (webkit: Webkit, mock: M) => Promise<void>;

function scenario<M extends Mock | ConsoleMock>(
  make: () => M,
  run: Scenario<M>,
  { hash = '', away = false }: { hash?: string; away?: boolean } = {},
) {
  return async (webkit: Webkit): Promise<void> => {
    const mock = make();
    await mock.start();
    try {
      await open(webkit, mock.url, wide, hash);
      await run(webkit, mock);
      // A browser calls it an error that nobody answers.
      if (!away) assert.deepEqual(await webkit.run('return problems'), []);
    } finally {
      await webkit.goto('about:blank');
      await mock.stop();
    }
  };
}

const fresh = () => {
  const mock = new Mock();
  mock.status = { ...mock.status, ...unconfigured };
  return mock;
};
const signedOut = () => {
  const mock = new ConsoleMock();
  mock.session = { ...mock.session, signed_in: false };
  return mock;
};
const row = (id: string) => `[data-tunnel=${id}]`;

export const scenarios = {
  'first run, then a tunnel by the form': scenario(fresh, async (webkit, mock) => {
    await webkit.fill('textarea', refusedToken);
    await webkit.click('button', 'Connect');
    await webkit.find('main, form', 'The relay refuses this token');
    await webkit.fill('textarea', goodToken);
    await webkit.click('button', 'Connect');
    await webkit.find('h1', 'Overview');
    await webkit.click('nav a', 'Tunnels');
    await webkit.click('button', 'New tunnel');
    // The one thing to type has the focus already.
    await webkit.until(`return document.activeElement.id === 'f-local_port'`);
    await webkit.press(...'70000', 'Tab');
    await webkit.find('dialog', 'from 1 to 65535');
    await webkit.fill('#f-local_port', '3000');
    await webkit.fill('#f-domain', 'lamp');
    await webkit.press('Enter');
    await webkit.find('a', 'https://lamp.relay.example');
    await webkit.gone('dialog');
    assert.ok([...mock.tunnels.values()].some((t) => t.local_port === 3000 && t.name === 'lamp'));
  }),

  'stop, start, copy, delete and undo': scenario(
    () => new Mock(),
    async (webkit, mock) => {
      await webkit.click(`${row('t_0001')} button`, 'Stop');
      await webkit.find(row('t_0001'), 'Stopped');
      await webkit.click(`${row('t_0001')} button`, 'Start');
      await webkit.find(row('t_0001'), 'Running');
      await webkit.click(`${row('t_0001')} button`, 'Copy public URL');
      await webkit.find('button', 'Copied');
      // What was copied can be pasted.
      await webkit.click('input[type=search]');
      await webkit.paste();
      await webkit.until(`return document.activeElement.value === 'https://shop.relay.example'`);
      await webkit.fill('input[type=search]', ' ');
      await webkit.click(`${row('t_0002')} button`, 'More');
      await webkit.click('[role=menuitem]', 'Delete');
      await webkit.gone(row('t_0002'));
      await webkit.click('button', 'Undo');
      await webkit.find(row('t_0002'));
      assert.ok(!mock.seen.includes('DELETE tunnels/t_0002'), 'an undone deletion was sent');
    },
    { hash: '#/tunnels' },
  ),

  'menus, dialogs and tips by the keyboard': scenario(
    () => new Mock(),
    async (webkit) => {
      await webkit.find(row('t_0001'));
      await webkit.press('Tab', 'Enter');
      await webkit.until(`return document.activeElement.id === 'main'`);
      await webkit.run(`document.querySelector(arguments[0]).focus()`, `${row('t_0001')} a`);
      await webkit.press('Tab');
      await webkit.find('[role=tooltip]', 'Copy public URL');
      await webkit.press('Tab', 'Tab', 'Enter');
      const focused = (name: string) =>
        webkit.until(`return document.activeElement.textContent.includes(arguments[0])`, name);
      await focused('Edit tunnel');
      await webkit.press('ArrowDown', 'ArrowDown');
      await focused('QR code');
      await webkit.press('Enter');
      await webkit.find('dialog', 'shop.relay.example');
      await webkit.press('Escape');
      await webkit.gone('dialog');
      // Who uses the keyboard goes on where the dialog was opened.
      await webkit.until(`return document.activeElement.ariaLabel?.startsWith('More')`);
    },
    { hash: '#/tunnels' },
  ),

  'the daemon is killed, and comes back': scenario(
    () => new Mock(),
    async (webkit, mock) => {
      await webkit.find('a', 'https://shop.relay.example');
      mock.setStatus({ rtt_ms: 77 });
      await webkit.find('main', '77 ms');
      await mock.stop();
      await webkit.find('#app', 'The adit daemon does not answer.');
      mock.renew();
      mock.tunnels.set('t_0099', tunnel(99, { name: 'after-restart' }));
      await mock.start();
      await webkit.find('a', 'https://after-restart.relay.example');
      await webkit.gone('[role=alert]', 'does not answer');
      mock.setTunnel(tunnel(100, { name: 'live-again' }), 'created');
      await webkit.find('a', 'https://live-again.relay.example');
    },
    { away: true, hash: '#/overview' },
  ),

  'inspect, replay, files out and in': scenario(
    () => new Mock(),
    async (webkit, mock) => {
      await webkit.find('pre', '"Grubenlampe"');
      await webkit.click('button', 'Replay');
      await until('the replay', () => mock.seen.includes('POST requests/r_37/replay'));
      await webkit.click('button', 'Export as HAR');
      const saved = join(webkit.downloads, 'adit.har');
      await until(`the file ${saved}`, () => existsSync(saved));
      await until('the list', () => mock.seen.includes('GET requests.har'));
      const har = join(webkit.downloads, 'site.har');
      writeFileSync(har, '{"log":{"version":"1.2","creator":{},"entries":[]}}');
      await webkit.choose('input[type=file]', har);
      await webkit.find('[role=option]', '/imported');
    },
    { hash: '#/inspector/r_37' },
  ),

  'sign in, a policy, the log as it happens': scenario(signedOut, async (webkit, mock) => {
    await webkit.fill('#name', 'ann');
    await webkit.fill('#password', password);
    await webkit.press('Enter');
    await webkit.find('h1', 'Overview');
    await webkit.click('nav a', 'Policies');
    await webkit.click('main a', 'shop.relay.example');
    await webkit.fill('#p-deny', '192.0.2.0/24');
    await webkit.click('button', 'Save policy');
    await until('the policy', () =>
      mock.policies.some((p) => p.policy.deny?.join() === '192.0.2.0/24'),
    );
    await webkit.click('nav a', 'Access log');
    await webkit.find('[data-row^=a_]');
    mock.visit({ path: '/just-now' });
    await webkit.find('[data-row^=a_]', '/just-now');
  }),
};
