/** The keyboard keeps its place: whatever goes, the focus is somewhere that can be seen. */
import type { Page } from 'playwright-core';
import { scenario } from './scenarios';

/** Waits until what has the focus, and shows it, is what is meant. */
export const focused = (page: Page, selector: string) =>
  page.locator(`${selector}:focus-visible`).waitFor();
const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).first();

export const scenarios = {
  'the keyboard keeps its place among tunnels': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/tunnels`);
    // Stopping takes a moment; the button keeps the focus through it.
    await button(page, 'Stop: shop').press('Enter');
    await focused(page, '[data-tunnel=t_0001] [aria-label="Start: shop"]');
    // The next row's button takes over from that of a row that is deleted.
    await button(page, 'More for api').press('Enter');
    await focused(page, '[role=menuitem]:has-text("Edit tunnel")');
    await page.keyboard.press('End');
    await focused(page, '[role=menuitem]:has-text("Delete")');
    await page.keyboard.press('Enter');
    await focused(page, '[data-tunnel=t_0003] [aria-haspopup=menu]');
    await page.getByLabel('Search tunnels').fill('nothing is called so');
    await button(page, 'Reset filters').press('Enter');
    await focused(page, '[data-tunnel=t_0001] a');
  }),

  'the keyboard keeps its place on other pages': scenario(async (page, mock) => {
    await button(page, 'Pause').press('Enter');
    await button(page, 'Resume').waitFor();
    await focused(page, 'main button');
    await page.goto(`${mock.url}/#/inspector`);
    await page.locator('[role=option]').first().waitFor();
    await page.locator('[role=listbox]').press('ArrowDown');
    await page.locator('.detail').getByRole('button', { name: 'Close' }).press('Enter');
    await focused(page, '[role=listbox]');
    await button(page, 'Clear the list').press('Enter');
    await page.locator('dialog').getByRole('button', { name: 'Clear' }).press('Enter');
    await page.getByText('No requests yet').waitFor();
    await focused(page, 'main .head button');
    await page.goto(`${mock.url}/#/diagnostics`);
    await page.locator('.empty button').press('Enter');
    await page.locator('li .advice').first().waitFor();
    await focused(page, 'main .head button');
    await page.goto(`${mock.url}/#/settings`);
    await button(page, 'Sign out of the relay').press('Enter');
    await page.locator('dialog [type=submit]').press('Enter');
    await focused(page, 'textarea');
  }),
};
