/** Webhooks that a tunnel lets in, as its form has them. */
import assert from 'node:assert/strict';
import { openPolicy, save } from './policy';
import { scenario } from './scenarios';

export const scenarios = {
  'webhooks: added, checked, and kept with their secrets': scenario(async (page, mock) => {
    await openPolicy(page, mock, 't_0001');
    await page.getByText('No path is reserved for webhooks.').waitFor();
    await page.getByRole('button', { name: 'Add webhook' }).click();
    await page.locator('#p-webhook-0-provider:focus').waitFor();
    const one = page.getByRole('group', { name: 'Webhook 1' });
    assert.equal(await one.getByLabel('Provider').inputValue(), 'github');
    const path = one.getByLabel('Path, and everything below it');
    assert.equal(await path.inputValue(), '/hooks/github');
    await path.fill('hooks');
    await save(page);
    await page.locator('#p-webhook-0-path-error', { hasText: 'begins with a slash' }).waitFor();
    await page.locator('#p-webhook-0-path:focus').waitFor();
    await page.locator('#p-webhook-0-secret-error', { hasText: 'Enter the secret' }).waitFor();
    await path.fill('/hooks');
    await one.getByLabel('Secret', { exact: true }).fill('the new secret');
    await one.getByLabel('Previous secret').fill('the old secret');
    await page.getByRole('button', { name: 'Add webhook' }).click();
    const two = page.getByRole('group', { name: 'Webhook 2' });
    await two.getByLabel('Provider').selectOption('Other (HMAC of the body)');
    await two.getByLabel('Path, and everything below it').fill('');
    await page.getByText('The path / covers every path').waitFor();
    await two.getByLabel('Path, and everything below it').fill('/ci');
    await two.getByLabel('Secret', { exact: true }).fill('another secret');
    await save(page);
    await page
      .locator('#p-webhook-1-header-error', { hasText: 'Enter the name of the header' })
      .waitFor();
    assert.equal(mock.policies.size, 0, 'nothing was sent that is not right');
    await two.getByLabel('Header with the signature').fill('X-CI-Signature');
    await two.getByLabel('Algorithm').selectOption('HMAC-SHA512');
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    const hmac = { header: 'X-CI-Signature', algorithm: 'sha512', encoding: 'hex' };
    assert.deepEqual(mock.policies.get('t_0001'), {
      webhooks: [
        { path: '/hooks', provider: 'github', secrets: ['the new secret', 'the old secret'] },
        { path: '/ci', provider: 'hmac', secrets: ['another secret'], ...hmac },
      ],
    });
    // What is left as it is keeps its secrets.
    await openPolicy(page, mock, 't_0001');
    assert.equal(await one.getByLabel('Secret', { exact: true }).inputValue(), '');
    assert.equal(
      await one.getByLabel('Secret', { exact: true }).getAttribute('placeholder'),
      'unchanged',
    );
    await page.getByRole('button', { name: 'Remove webhook 2' }).click();
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), {
      webhooks: [{ path: '/hooks', provider: 'github' }],
    });
  }),

  'webhooks: of a public key, and where there are none': scenario(async (page, mock) => {
    await openPolicy(page, mock, 't_0001');
    await page.getByRole('button', { name: 'Add webhook' }).click();
    await page.getByLabel('Provider', { exact: true }).selectOption('Discord');
    await page.getByLabel('Public key').fill('ab'.repeat(32));
    assert.equal(await page.getByLabel('Previous secret').count(), 0);
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001')?.webhooks, [
      { path: '/hooks/discord', provider: 'discord', secrets: ['ab'.repeat(32)] },
    ]);
    mock.policies.clear();
    // A relay that knows of none, and what has no HTTP.
    mock.webhooks = undefined;
    await openPolicy(page, mock, 't_0001');
    assert.equal(await page.getByRole('heading', { name: 'Webhooks' }).count(), 0);
    mock.webhooks = ['github'];
    await openPolicy(page, mock, 't_0003');
    assert.equal(await page.getByRole('heading', { name: 'Webhooks' }).count(), 0);
  }),
};
