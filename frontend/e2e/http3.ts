/**
 * A site over HTTP/3 in a real browser: `npm run e2e:http3`.
 *   ADIT_SITE  the site's URL, at whose port nothing answers over TCP
 *   ADIT_SPKI  the SHA-256 of the public key of its certificate's authority, in base64
 *   ADIT_SIZE  how many bytes to download and upload
 *   ADIT_SUM   the SHA-256 of /file?size=ADIT_SIZE, in hexadecimal
 */
import assert from 'node:assert/strict';
import { launch } from './browser';

function need(name: string): string {
  const value = process.env[name];
  if (value) return value;
  console.error(`set ${name}; the head of e2e/http3.ts says to what`);
  process.exit(2);
}

const site = new URL(need('ADIT_SITE'));
const size = Number(need('ADIT_SIZE'));
const sum = need('ADIT_SUM');

// Playwright waits for a page's own promises without an end.
const deadline = setTimeout(() => {
  console.error('FAIL  the browser did not end in time');
  process.exit(1);
}, 150_000);
const browser = await launch(
  [site.hostname],
  [
    '--enable-quic',
    `--origin-to-force-quic-on=${site.host}`,
    `--ignore-certificate-errors-spki-list=${need('ADIT_SPKI')}`,
  ],
);
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  const answer = await page.goto(site.href);
  assert.equal(answer?.status(), 200);
  assert.match((await answer?.text()) ?? '', /proto=https/);

  const got = await page.evaluate(async (bytes) => {
    const down = await (await fetch(`/file?size=${bytes}`)).arrayBuffer();
    const up = await (await fetch('/upload', { method: 'POST', body: down })).text();
    const digest = [...new Uint8Array(await crypto.subtle.digest('SHA-256', down))];
    return {
      length: down.byteLength,
      down: digest.map((n) => n.toString(16).padStart(2, '0')).join(''),
      up,
    };
  }, size);
  assert.deepEqual(got, { length: size, down: sum, up: sum });

  // Each event is only sent when the one before it was seen: none may wait for
  // others on its way.
  const events = await page.evaluate(
    () =>
      new Promise<string[]>((resolve) => {
        const seen: string[] = [];
        const source = new EventSource('/sse?n=5');
        source.onerror = () => {
          source.close();
          resolve(seen);
        };
        source.onmessage = (event: MessageEvent<string>) => {
          seen.push(event.data);
          void fetch('/next');
        };
      }),
  );
  assert.deepEqual(events, ['0', '1', '2', '3', '4']);

  const protocols = await page.evaluate(() =>
    [
      ...performance.getEntriesByType('navigation'),
      ...performance.getEntriesByType('resource'),
    ].map((entry) => (entry as PerformanceResourceTiming).nextHopProtocol),
  );
  assert.ok(protocols.length >= 6, `only ${protocols.length} requests were measured`);
  assert.deepEqual([...new Set(protocols)], ['h3']);
  console.log(`ok    ${protocols.length} requests over HTTP/3`);
} finally {
  await browser.close();
}
clearTimeout(deadline);
