/** The keyboard keeps its place in the console, too. */
import { focused } from '../keyboard';
import { button, row, scenario } from './scenarios';

export const scenarios = {
  'the keyboard keeps its place among policies': scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/policies`);
      await row(page, 'docs.relay.example').getByRole('link').press('Enter');
      // A policy is a page: the way on begins at its top, as on any other.
      await page.getByRole('button', { name: 'Save policy' }).waitFor();
      await page.locator('main:focus').waitFor();
      await button(page, 'Add user').press('Enter');
      await focused(page, '.user input[aria-label=Name]');
      await button(page, 'Remove the user').press('Enter');
      await focused(page, 'form button:has-text("Add user")');
      await button(page, 'Add hours').press('Enter');
      await focused(page, '.days button:has-text("Mon")');
      await button(page, 'Remove hours 1').press('Enter');
      await focused(page, 'form button:has-text("Add hours")');
      await page.locator('header').getByRole('button', { name: 'Policies' }).press('Enter');
      await page.locator('main:focus').waitFor();

      const gone = row(page, 'shop.relay.example');
      await gone.getByRole('button', { name: /^Delete/ }).press('Enter');
      await page.locator('dialog').getByRole('button', { name: 'Delete' }).press('Enter');
      await gone.waitFor({ state: 'detached' });
      await focused(page, '[data-row="docs.relay.example"] button');
      await button(page, 'New policy').press('Enter');
      await page.locator('#p-target').fill('tcp.20002');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'tcp.20002' }).waitFor();
      await page.locator('main:focus').waitFor();
    },
    {
      // It has neither hours nor users, and can have both.
      prepare: (mock) =>
        void Object.assign(mock.policies[1] ?? {}, { target: 'docs.relay.example' }),
      allow: /status of 404/,
    },
  ),

  'signing in begins where one types': scenario(async (page) => {
    await button(page, 'Sign out').press('Enter');
    await focused(page, '#name');
  }),
};
