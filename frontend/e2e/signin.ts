/** Who has to sign in to a tunnel, as its form has it. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { openPolicy, save } from './policy';
import { scenario } from './scenarios';

const provider = (page: Page) => page.getByLabel('Identity provider');

export const scenarios = {
  'visitors sign in: chosen, checked, and kept': scenario(async (page, mock) => {
    await openPolicy(page, mock, 't_0001');
    await page.getByText('No sign-in is required.').waitFor();
    await provider(page).selectOption('company');
    await save(page);
    await page
      .locator('#p-signin-emails-error', { hasText: 'List the allowed addresses' })
      .waitFor();
    await page.locator('#p-signin-emails:focus').waitFor();
    const emails = page.getByLabel('Email addresses');
    await emails.fill('ann@example.com\n@');
    await page.locator('#p-signin-emails-error', { hasText: '“@” is neither' }).waitFor();
    await emails.fill('ann@example.com\n@partner.example');
    await page.getByLabel('Groups').fill('g'.repeat(257));
    await page.locator('#p-signin-groups-error', { hasText: 'at most 256 bytes' }).waitFor();
    assert.equal(mock.policies.size, 0, 'nothing was sent that is not right');
    await page.getByLabel('Groups').fill('cn=ops,dc=example');
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), {
      sign_in: {
        provider: 'company',
        emails: ['ann@example.com', '@partner.example'],
        groups: ['cn=ops,dc=example'],
      },
    });
    await openPolicy(page, mock, 't_0001');
    assert.equal(await emails.inputValue(), 'ann@example.com\n@partner.example');
    await page.getByLabel('Anyone', { exact: true }).check();
    await page.getByRole('alert').filter({ hasText: 'Everyone with an account' }).waitFor();
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), {
      sign_in: { provider: 'company', anyone: true },
    });
  }),

  'a provider that the relay has no more, and a relay without any': scenario(async (page, mock) => {
    mock.policies.set('t_0001', { rate: 5, sign_in: { provider: 'old', groups: ['ops'] } });
    await openPolicy(page, mock, 't_0001');
    assert.equal(await provider(page).inputValue(), 'old');
    await page.getByRole('alert').filter({ hasText: 'does not know the provider' }).waitFor();
    // It can be had again, and what was typed with it.
    await provider(page).selectOption('partners');
    assert.equal(await page.getByLabel('Groups').inputValue(), 'ops');
    await provider(page).selectOption({ label: 'old (unknown to the relay)' });
    await provider(page).selectOption('Off');
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), { rate: 5 });
    mock.providers = undefined;
    await openPolicy(page, mock, 't_0001');
    await page.getByText('The relay has no identity provider').waitFor();
    assert.equal(await provider(page).count(), 0);
    mock.providers = ['company'];
    // What has no HTTP cannot have visitors sign in.
    await openPolicy(page, mock, 't_0003');
    assert.equal(await page.getByRole('heading', { name: 'Sign-in' }).count(), 0);
  }),
};
