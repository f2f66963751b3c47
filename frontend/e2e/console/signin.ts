/** Visitors who sign in, as the console shows and sets it. */
import assert from 'node:assert/strict';
import { button, row, scenario, text } from './scenarios';

export const scenarios = {
  'visitors sign in: a policy, and what becomes of a visitor': scenario(
    async (page, mock) => {
      const target = 'shop.relay.example';
      const saved = () => mock.policies.find((p) => p.target === target)?.policy.sign_in;
      await page.goto(`${mock.url}/#/policies/${target}`);
      const provider = page.getByLabel('Identity provider');
      const emails = page.getByLabel('Email addresses');
      await provider.locator('option', { hasText: 'partners' }).waitFor({ state: 'attached' });
      assert.equal(await provider.inputValue(), 'company');
      assert.equal(await emails.inputValue(), '@example.com\ncarl@partner.example');
      await emails.fill('example.com');
      await button(page, 'Save policy').click();
      await page.locator('#p-signin-emails-error', { hasText: '“example.com”' }).waitFor();
      await page.locator('#p-signin-emails:focus').waitFor();
      await emails.fill('@example.com');
      // The relay's configuration has changed meanwhile.
      mock.settings.sign_in = { providers: [] };
      await button(page, 'Save policy').click();
      await page.locator('#p-signin-error', { hasText: 'no identity provider' }).waitFor();
      await page.locator('#p-signin:focus').waitFor();
      mock.settings.sign_in = {
        providers: [{ name: 'company', type: 'oidc', issuer: 'https://example.com' }],
      };
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      assert.deepEqual(saved(), {
        provider: 'company',
        emails: ['@example.com'],
        groups: ['shop-admins'],
      });

      await page.getByLabel("Visitor's address").fill('203.0.113.7');
      await page.getByLabel('Signed in as').fill('dora@elsewhere.example');
      await button(page, 'Explain').click();
      await text(page, 'Sign-in: not on the list').waitFor();
      await text(page, 'dora@elsewhere.example is not among those let in').waitFor();
      await page.getByLabel('In the groups').fill('shop-admins');
      await button(page, 'Explain').click();
      await text(page, 'dora@elsewhere.example has signed in with company').waitFor();

      await page.goto(`${mock.url}/#/policies/tcp.20001`);
      await page.getByLabel('Allowed addresses').waitFor();
      assert.equal(await provider.count(), 0);
      assert.equal(await page.getByLabel('Signed in as').count(), 0);
    },
    { allow: /status of 400/ },
  ),

  'visitors sign in: who it was, and with what': scenario(async (page, mock) => {
    await page.goto(`${mock.url}/#/access`);
    mock.visit({ id: 'known', user: 'ann@example.com' });
    mock.visit({ id: 'nobody', status: 302, refused: 'sign_in' });
    await row(page, 'known').getByText('ann@example.com').waitFor();
    await row(page, 'nobody').getByText('refused by “Sign-in”').waitFor();
    await page.goto(`${mock.url}/#/settings`);
    await row(page, 'partners').getByText('connection refused').waitFor();
    await row(page, 'company').getByText('https://login.example.com/realms/company').waitFor();
    await text(page, 'https://sign-in.relay.example/callback').waitFor();
    await button(page, 'Copy callback URL').click();
    await button(page, 'Copied').waitFor();
    await row(page, 'clients').getByText('GitHub', { exact: true }).waitFor();
  }),

  "visitors sign in: one person's sign-ins are ended": scenario(
    async (page, mock) => {
      await page.goto(`${mock.url}/#/settings`);
      await button(page, 'Sign a visitor out').click();
      await page.locator('#es-user:focus').waitFor();
      await button(page, 'Sign the visitor out').click();
      await page.locator('#es-user-error', { hasText: 'an address or a name' }).waitFor();
      await page.getByLabel('Visitor', { exact: true }).fill(' ann@example.com ');
      await button(page, 'Sign the visitor out').click();
      await text(page, 'ann@example.com is signed out everywhere.').waitFor();
      await page.locator('dialog').waitFor({ state: 'detached' });
      assert.deepEqual(mock.ended, ['ann@example.com']);
    },
    { allow: /status of 400/ },
  ),
};
