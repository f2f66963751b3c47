/** A tunnel that changes headers. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { has } from './browser';
import { scenario } from './scenarios';

const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first();

export const scenarios = {
  'headers are set and removed, a line each': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    await button(page, 'New tunnel').click();
    await page.getByLabel('Local port').fill('3000');
    await page.getByLabel('Domain').fill('lamp');
    await page.getByText('More options').click();
    const requests = page.getByLabel('Request headers');
    await requests.fill('no header');
    await page.locator('#f-request_headers-error').waitFor();
    await requests.fill('X-Env: demo\nCookie:');
    await page.locator('#f-request_headers-error').waitFor({ state: 'detached' });
    await page.getByLabel('Response headers').fill('Server:');
    await button(page, 'Create').click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    const made = [...mock.tunnels.values()].find((t) => t.domain === 'lamp');
    assert.deepEqual(made?.request_headers, { 'X-Env': 'demo', Cookie: '' });
    assert.deepEqual(made?.response_headers, { Server: '' });
    // They are there to be changed.
    await button(page, 'More for lamp').click();
    await page.getByRole('menuitem', { name: 'Edit tunnel' }).click();
    await has(page.getByLabel('Request headers'), 'Cookie:\nX-Env: demo');
  }),
};
