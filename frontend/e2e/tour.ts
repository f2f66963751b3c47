/** Every page of the Web UI. */
import type { Page } from 'playwright-core';
import { guarded, mistake, someVisits } from './fixtures';
import { tours, type Stop } from './looks';
import { Mock, unconfigured } from './mock';
import type { Runs } from './runner';

/** What each stop shows when it is ready. */
export const stops: readonly Stop[] = [
  ['first', '', 'textarea'],
  ['overview', '#/overview', 'text=shop.relay.example'],
  ['tunnels', '#/tunnels', '[data-tunnel=t_0001]'],
  ['create', '#/tunnels/new', '#f-local_port'],
  ['paths', '#/tunnels/t_0002', '#f-paths [role=group]'],
  ['private', '#/tunnels/t_0008', '#f-visitors'],
  ['policy', '#/tunnels/policy:t_0001', '#p-signin'],
  ['declared', '#/tunnels/t_0004', 'dialog [role=status]'],
  ['inspector', '#/inspector', '#r-r_40'],
  ['detail', '#/inspector/r_37', '.detail pre'],
  ['logs', '#/logs', '[role=log] .line'],
  ['diagnostics', '#/diagnostics', '.empty button'],
  ['settings', '#/settings', 'table'],
  ['mistake', '#/overview', '[role=alert]'],
];

export const tour = (shots?: string): Runs =>
  tours(
    {
      name: 'pages',
      prefix: '',
      sizes: { wide: [1280, 800], tablet: [768, 1024], phone: [390, 844] },
      stops,
      loaded: ['first', 'overview'],
      begin,
    },
    shots,
  );

async function begin() {
  const mock = new Mock();
  mock.policies.set('t_0001', guarded);
  mock.visits = someVisits();
  mock.invitations = [
    { tunnel: 'studio/files', type: 'tcp' },
    { tunnel: 'studio/moonlight', type: 'udp' },
    { tunnel: 'studio/rdp', type: 'tcp' },
  ];
  await mock.start();
  const configured = mock.status;
  return {
    url: mock.url,
    prepare: (stop: string) => {
      mock.config.error = stop === 'settings' || stop === 'mistake' ? mistake : undefined;
      mock.status = stop === 'first' ? { ...configured, ...unconfigured } : configured;
    },
    arrived: async (page: Page, stop: string, ready: string) => {
      if (stop === 'paths') await page.locator('#f-paths').evaluate((e) => e.scrollIntoView());
      if (stop !== 'diagnostics') return;
      await page.locator(ready).click();
      await page.locator('li .advice').first().waitFor();
      await page.getByRole('button', { name: /Measure|测量/ }).click();
      await page.getByText(/In use|使用中/).waitFor();
      await page.mouse.move(0, 0); // where it would be told something by what comes there next
    },
    end: () => mock.stop(),
  };
}
