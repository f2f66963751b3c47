/** Webhooks that a policy lets in, as the console shows and sets them. */
import assert from 'node:assert/strict';
import { button, row, scenario, text } from './scenarios';

export const scenarios = {
  'webhooks: a policy, and what becomes of a visitor': scenario(async (page, mock) => {
    const target = 'shop.relay.example';
    const saved = () => mock.policies.find((p) => p.target === target)?.policy.webhooks;
    await page.goto(`${mock.url}/#/policies/${target}`);
    const secret = page.getByLabel('Secret', { exact: true });
    await secret.waitFor();
    assert.equal(await secret.getAttribute('placeholder'), 'unchanged');
    await page.getByLabel('Provider', { exact: true }).selectOption('Stripe');
    await button(page, 'Save policy').click();
    await page.locator('#p-webhook-0-secret-error', { hasText: 'Enter the secret' }).waitFor();
    await page.locator('#p-webhook-0-secret:focus').waitFor();
    await secret.fill('whsec_of_the_endpoint');
    await button(page, 'Save policy').click();
    await text(page, 'The policy is now in force').waitFor();
    assert.deepEqual(saved(), [
      { path: '/hooks/github', provider: 'stripe', secrets: ['whsec_of_the_endpoint'] },
    ]);

    await page.getByLabel("Visitor's address").fill('203.0.113.7');
    await page.getByLabel('Path', { exact: true }).fill('/hooks/github');
    await button(page, 'Explain').click();
    await text(page, 'a request to /hooks/github must be signed by stripe').waitFor();
    await page.getByLabel('Signed by the provider').check();
    await button(page, 'Explain').click();
    await text(page, 'signed by stripe, for /hooks/github').waitFor();

    await page.goto(`${mock.url}/#/access`);
    mock.visit({ id: 'unsigned', status: 401, refused: 'webhooks' });
    await row(page, 'unsigned').getByText('refused by “Webhooks”').waitFor();
    await page.goto(`${mock.url}/#/policies/tcp.20001`);
    await page.getByLabel('Allowed addresses').waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Webhooks' }).count(), 0);
  }),
};
