/**
 * A visitor who has to sign in, in a real browser: `npm run e2e:visitor`.
 *   ADIT_SITE      the URL of a site whose policy lets in the first user alone, and
 *                  which answers with X-Forwarded-User, -Email and its cookies
 *   ADIT_SPKI      the SHA-256 of the public key of its certificate's authority, in base64
 *   ADIT_PASSWORD  of the provider's users test-user@localhost and test-user2
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { need } from './attacker';
import { launch, violations } from './browser';

const site = new URL(need('ADIT_SITE'));
const password = need('ADIT_PASSWORD');
const shots = new URL('../screenshots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });
let step = 'start';

const browser = await launch(
  ['*.localhost'],
  [`--ignore-certificate-errors-spki-list=${need('ADIT_SPKI')}`],
);
const context = await browser.newContext({ locale: 'en' });
context.setDefaultTimeout(60_000);
const page = await context.newPage();

/** Signs in at the provider, where the page has come to. */
async function signIn(user: string): Promise<void> {
  await page.getByLabel('Username').waitFor();
  assert.equal(new URL(page.url()).hostname, 'localhost', 'the provider asks');
  await page.getByLabel('Username').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Login' }).click();
}

/** Looks at a page of the relay's. */
async function look(name: string): Promise<void> {
  await page.screenshot({ path: `${shots}visitor-${name}.png` });
  assert.deepEqual(await violations(page), []);
}

const cookies = async () => (await context.cookies(site.href)).map((cookie) => cookie.name);

try {
  step = 'sign in';
  const asked = new URL('/cart?a=b&c=%2F', site).href;
  await page.goto(asked);
  await signIn('test-user@localhost');
  await page.waitForURL(asked);
  const said = (await page.locator('body').textContent()) ?? '';
  assert.equal(said, 'user=id1 email=test-user@zitadel.ch cookie= host=' + site.hostname);
  assert.deepEqual(await cookies(), ['__Host-adit-visitor']);
  assert.equal(await page.evaluate(() => document.cookie), '', 'no script has the cookie');

  step = 'go on';
  await page.goto(site.href);
  assert.equal(page.url(), site.href, 'who has signed in is asked once');
  const again = await page.evaluate(async () => (await fetch('/form', { method: 'POST' })).status);
  assert.equal(again, 200, 'a script of the page');

  step = 'sign out';
  await page.goto(new URL('/.adit/sign-out', site).href);
  await page.getByText('You are signed in as test-user@zitadel.ch.').waitFor();
  assert.deepEqual(await cookies(), ['__Host-adit-visitor'], 'a link signs nobody out');
  await look('sign-out');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
  await look('signed-out');
  assert.deepEqual(await cookies(), []);

  step = 'be asked again';
  await page.getByRole('link', { name: 'Open the site' }).click();
  await signIn('test-user2');
  await page.getByRole('heading', { name: 'You may not visit this site' }).waitFor();
  await page.getByText('You are signed in as test-user2@zitadel.ch').waitFor();
  await look('not-let-in');

  step = 'be somebody else';
  await page.getByRole('link', { name: 'Sign in as somebody else' }).click();
  await signIn('test-user@localhost');
  await page.getByText('email=test-user@zitadel.ch').waitFor();
  assert.equal(page.url(), site.href);
  console.log(`ok    signed in at ${site.href}`);
} catch (error) {
  await page.screenshot({ path: `${shots}visitor-failed.png` });
  console.error(`FAIL  ${step}: ${error instanceof Error ? error.message : String(error)}`);
  console.error(`at ${page.url()}: ${await page.locator('body').textContent()}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
