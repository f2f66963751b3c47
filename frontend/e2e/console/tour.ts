/** Every page of the console. */
import { tours, type Stop } from '../looks';
import type { Runs } from '../runner';
import { ConsoleMock } from './mock';

/** What each stop shows when it is ready. */
export const stops: readonly Stop[] = [
  ['setup', '', '#code'],
  ['signin', '', '#password'],
  ['overview', '#/overview', '[data-row=s_0]'],
  ['clients', '#/clients', '[data-row=shop]'],
  ['client', '#/clients/shop', 'dialog dl'],
  ['endpoints', '#/endpoints', '[data-row=e_1]'],
  ['domains', '#/domains', '[data-row="demo.example.org"]'],
  ['policies', '#/policies', '[data-row="tcp.20001"]'],
  ['policy', '#/policies/shop.relay.example', '.days button'],
  ['access', '#/access', '[data-row^=a_]'],
  ['errors', '#/errors', '[data-row^=a_]'],
  ['nodes', '#/nodes', '[data-row=n_0]'],
  ['audit', '#/audit', '[data-row="31"]'],
  ['settings', '#/settings', '[data-row=siem]'],
];

export const tour = (shots?: string): Runs =>
  tours(
    {
      name: 'console',
      prefix: 'console-',
      sizes: { wide: [1360, 900], tablet: [1024, 768], phone: [390, 844] },
      stops,
      loaded: ['setup', 'signin', 'overview'],
      begin,
    },
    shots,
  );

async function begin() {
  const mock = new ConsoleMock();
  await mock.start();
  const inside = mock.session;
  return {
    url: mock.url,
    prepare: (stop: string) => {
      const out = stop === 'setup' || stop === 'signin';
      mock.session = { ...inside, signed_in: !out, setup_needed: stop === 'setup' };
    },
    arrived: () => Promise.resolve(),
    end: () => mock.stop(),
  };
}
