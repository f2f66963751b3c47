/** Private tunnels, as the console shows them and guards them. */
import assert from 'node:assert/strict';
import { button, row, scenario, text } from './scenarios';

export const scenarios = {
  'a private tunnel: its address, its policy, and who was not let in': scenario(
    async (page, mock) => {
      const target = 'workshop-nas/ssh';
      const saved = () => mock.policies.find((p) => p.target === target)?.policy;
      await page.goto(`${mock.url}/#/endpoints`);
      const endpoint = row(page, 'e_6');
      await endpoint.getByText('adit://workshop-nas/ssh').waitFor();
      await endpoint.getByText('Private', { exact: true }).waitFor();
      await endpoint.getByText('visited by builds-laptop, office-pc').waitFor();
      // No browser opens it.
      assert.equal(await endpoint.locator('a[href^="adit:"]').count(), 0);
      await endpoint.getByRole('button', { name: 'Copy address' }).waitFor();
      await page.getByLabel('Search endpoints').fill(target);
      await row(page, 'e_1').waitFor({ state: 'detached' });
      await endpoint.getByRole('link', { name: 'Add' }).click();
      await page.getByRole('heading', { name: target }).waitFor();
      await page.getByLabel('Refused addresses').fill('192.0.2.0/24');
      assert.equal(await page.getByRole('button', { name: 'Add user' }).count(), 0);
      await button(page, 'Save policy').click();
      await text(page, 'The policy is now in force').waitFor();
      assert.deepEqual(saved(), { deny: ['192.0.2.0/24'] });
      assert.ok(mock.seen.includes(`PUT policies/${encodeURIComponent(target)}`));
      // Its name can be typed, too, and it is found again by a reload.
      await page.goto(`${mock.url}/#/policies`);
      await button(page, 'New policy').click();
      await page.locator('#p-target').fill(target);
      await page.locator('#p-target').press('Enter');
      await page.getByRole('heading', { name: target }).waitFor();
      await page.reload();
      await page.getByRole('heading', { name: target }).waitFor();
      await page.waitForFunction(
        () => document.querySelector<HTMLTextAreaElement>('#p-deny')?.value === '192.0.2.0/24',
      );
      await page.goto(`${mock.url}/#/access`);
      mock.visit({ id: 'uninvited', endpoint_id: 'e_6', user: 'laptop', refused: 'visitors' });
      await row(page, 'uninvited').getByText('refused by “Visitors of a private tunnel”').waitFor();
    },
    { allow: /status of 404/ },
  ),
};
