/**
 * Hostile pages against a real daemon, in WebKit: `npm run e2e:webkit:attack`.
 *   ADIT_WEB_UI        a daemon without Bearer protection
 *   ADIT_CONSOLE_PORT  a free port; http://127.0.0.1:PORT is in its allowed_origins
 *   ADIT_AUTH_TOKEN    a token that the relay accepts, for the attacker to plant
 * That nothing was changed is for the caller to look up. WebKit has no rules for
 * names, so those that are not loopback's go by a proxy that is the attacker's DNS.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { attackerPage, need } from '../attacker';
import { Webkit } from './driver';

const ui = new URL(need('ADIT_WEB_UI'));
const token = need('ADIT_AUTH_TOKEN');

const sites: Server[] = [];
async function serve(port: number, run: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(run).listen(port, '127.0.0.1');
  sites.push(server);
  await once(server, 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const page: Parameters<typeof createServer>[1] = (_, answer) => {
  answer.setHeader('Content-Type', 'text/html');
  answer.end(attackerPage);
};

const attacker = await serve(0, page);
const console_ = await serve(Number(need('ADIT_CONSOLE_PORT')), page);
const proxy = await serve(0, (asked, answer) => {
  if (asked.url?.endsWith('/attacker')) return page(asked, answer);
  const { method, headers } = asked;
  const { pathname, search } = new URL(asked.url ?? '');
  const on = request(
    { host: ui.hostname, port: ui.port, method, headers, path: pathname + search },
    (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    },
  );
  on.on('error', () => answer.destroy());
  asked.pipe(on);
});

const webkit = await Webkit.launch({
  capabilities: { proxy: { proxyType: 'manual', httpProxy: proxy, noProxy: ['127.0.0.1'] } },
});
const rebound = `http://evil.example:${ui.port}`;
let step = 'start';
try {
  step = 'an allowed console';
  await webkit.goto(`http://${console_}`);
  const got = await webkit.run(
    `const [base] = arguments;
    return (async () => {
      const status = await fetch(base + '/api/v1/status');
      const made = await fetch(base + '/api/v1/tunnels', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: '{"type":"tcp","local_port":9,"name":"by-the-console"}',
      });
      const gone = await fetch(base + made.headers.get('Location'), { method: 'DELETE' });
      const event = await new Promise((resolve) => {
        const source = new EventSource(base + '/api/v1/events');
        source.onerror = () => resolve('error');
        source.addEventListener('status', () => (source.close(), resolve('status')));
      });
      return [status.status, made.status, gone.status, event];
    })();`,
    ui.origin,
  );
  assert.deepEqual(got, [200, 201, 204, 'status']);
  console.log(`ok    ${step}`);

  for (const [from, url, to] of [
    ['another origin', `http://${attacker}`, ui.origin],
    ['a rebound name', `${rebound}/attacker`, rebound],
    ['a foreign name', `${rebound}/attacker`, ui.origin],
  ] as const) {
    step = `from ${from}: all that stays on the page`;
    await webkit.goto(url);
    const through = await webkit.run('return attack(...arguments)', to, token);
    assert.deepEqual(through, [], step);
    step = `from ${from}: a form that leaves the page`;
    await webkit.run('setTimeout(() => last.submit())'); // a script that leaves its page has no result
    await webkit.until(`return document.body?.innerText.includes('"forbidden_')`);
    console.log(`ok    from ${from}`);
  }
} catch (error) {
  console.error(`FAIL  ${step}: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await webkit.close();
  for (const site of sites) {
    site.closeAllConnections();
    site.close();
  }
}
