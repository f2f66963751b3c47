/** The form of who is let in to a tunnel, as scenarios use it. */
import type { Page } from 'playwright-core';
import type { Mock } from './mock';

export const save = (page: Page) => page.getByRole('button', { name: 'Save policy' }).click();

export async function openPolicy(page: Page, mock: Mock, id: string): Promise<void> {
  await page.goto(`${mock.url}/#/tunnels`);
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.goto(`${mock.url}/#/tunnels/policy:${id}`);
  await page.getByLabel('Refused addresses').waitFor();
}
