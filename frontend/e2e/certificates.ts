/** Authorities whose certificates let in to a tunnel, as its form has them. */
import assert from 'node:assert/strict';
import { home, nameless, office } from './certificate';
import { openPolicy, save } from './policy';
import { scenario } from './scenarios';

export const scenarios = {
  'certificates: pasted, from a file, checked and read back': scenario(async (page, mock) => {
    await openPolicy(page, mock, 't_0001');
    await page.getByText('No certificate is accepted.').waitFor();
    assert.equal(await page.getByLabel('Names', { exact: true }).count(), 0);
    const pem = page.getByLabel('Authorities, as PEM');
    await pem.fill('ca.crt');
    await save(page);
    await page.locator('#p-certs-authorities-error', { hasText: 'at least one' }).waitFor();
    await page.locator('#p-certs-authorities:focus').waitFor();
    await pem.fill('-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----');
    await page.locator('#p-certs-authorities-error', { hasText: 'private key' }).waitFor();
    assert.equal(mock.policies.size, 0, 'nothing was sent that is not right');

    await pem.fill(home);
    const read = page.getByRole('list', { name: 'Authorities' }).getByRole('listitem');
    await read.filter({ hasText: 'Home CA, Example' }).filter({ hasText: 'until Nov 2' }).waitFor();
    // A file is added to what is there.
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Add from a file' }).click();
    const file = { name: 'office.crt', mimeType: 'application/x-x509-ca-cert' };
    await (await chooser).setFiles({ ...file, buffer: Buffer.from(`${office}\n`) });
    await read.filter({ hasText: 'Büro 办公室' }).waitFor();
    assert.equal(await read.count(), 2);
    await page.getByLabel('Names', { exact: true }).fill('ann@example.com\n\n Home phone ');
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), {
      client_certificates: {
        authorities: `${home}\n${office}\n`,
        names: ['ann@example.com', 'Home phone'],
      },
    });

    await openPolicy(page, mock, 't_0001');
    await read.filter({ hasText: 'Home CA, Example' }).waitFor();
    await pem.fill(nameless);
    await read.filter({ hasText: 'no name' }).waitFor();
    await pem.fill('');
    await page.getByLabel('Names', { exact: true }).fill('');
    await save(page);
    await page.locator('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(mock.policies.get('t_0001'), {});
  }),

  'certificates: where there are none': scenario(async (page, mock) => {
    const heading = page.getByRole('heading', { name: 'Client certificates' });
    mock.certificates = false;
    await openPolicy(page, mock, 't_0001');
    assert.equal(await heading.count(), 0, 'a relay that knows of none');
    mock.certificates = true;
    await openPolicy(page, mock, 't_0003');
    assert.equal(await heading.count(), 0, 'a tunnel without HTTP');
  }),
};
