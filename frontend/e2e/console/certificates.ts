/** Authorities whose certificates a policy lets in, as the console shows and sets them. */
import assert from 'node:assert/strict';
import { home, office } from '../certificate';
import { button, row, scenario, text } from './scenarios';

export const scenarios = {
  'certificates: a policy, and what becomes of a visitor': scenario(async (page, mock) => {
    const target = 'shop.relay.example';
    const saved = () => mock.policies.find((p) => p.target === target)?.policy.client_certificates;
    await page.goto(`${mock.url}/#/policies/${target}`);
    await page.getByText('No certificate is accepted.').waitFor();
    const asked = page.getByLabel('Client certificate', { exact: true });
    assert.equal(await asked.count(), 0);
    await page.getByLabel('Authorities, as PEM').fill(home);
    await page.getByText('Home CA, Example').waitFor();
    await page.getByLabel('Names', { exact: true }).fill('@example.com');
    await button(page, 'Save policy').click();
    await text(page, 'The policy is now in force').waitFor();
    assert.deepEqual(saved(), { authorities: `${home}\n`, names: ['@example.com'] });

    await page.getByLabel("Visitor's address").fill('203.0.113.7');
    await button(page, 'Explain').click();
    await text(page, 'no certificate was presented').waitFor();
    await asked.fill(office);
    await button(page, 'Explain').click();
    await text(page, 'CN=eve is from none of the authorities').waitFor();
    await asked.fill(home);
    await button(page, 'Explain').click();
    await text(page, 'CN=ann presents a certificate').waitFor();

    await page.goto(`${mock.url}/#/access`);
    mock.visit({ id: 'nobody', status: 403, refused: 'client_certificates' });
    await row(page, 'nobody').getByText('refused by “Client certificate”').waitFor();
    await page.goto(`${mock.url}/#/policies/tcp.20001`);
    await page.getByLabel('Allowed addresses').waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Client certificates' }).count(), 0);
  }),
};
