/** What the stand-in relay has. */
import { home } from '../certificate';
import type {
  Access,
  Account,
  APIToken,
  AuditEntry,
  Client,
  Domain,
  Endpoint,
  Explanation,
  Figure,
  Node,
  Policy,
  ReportedError,
  Session,
  Settings,
  Sink,
  Status,
} from '../../src/console/api/types';

const ago = (seconds: number) =>
  new Date(Date.now() - seconds * 1000).toISOString().replace(/\.\d+/, '');
const day = 86_400;

export const status: Status = {
  status: 'ok',
  store: 'here',
  version: 'v1.0.0',
  node: 'relay-1',
  domain: 'relay.example',
  started_at: ago(9 * day + 4000),
  tunnel_listen: '[::]:4433',
  edge_http_listen: '[::]:80',
  edge_https_listen: '[::]:443',
  console_listen: '127.0.0.1:37280',
  ca_file: '/var/lib/adit/relay/ca.pem',
  geo_database: true,
  client_count: 5,
  session_count: 4,
  endpoint_count: 5,
  claim_count: 7,
};

/** Waves that look like days of visitors, without chance: a picture is the same twice. */
export function figures(n: number, step: number): Figure[] {
  return Array.from({ length: n }, (_, i) => {
    const wave = 1 + 0.45 * Math.sin(i / 17) + 0.2 * Math.sin(i / 5.3) + 0.07 * Math.sin(i * 2.1);
    return {
      at: ago((n - i) * step),
      sessions: 4,
      endpoints: 5,
      connections: Math.round(38 * wave),
      visits: 46 * wave,
      refused: i % 90 > 70 ? 9 : 1.2,
      failed: 0.1,
      bytes_in: 210_000 * wave,
      bytes_out: 2_600_000 * wave * (1 + 0.2 * Math.sin(i / 3)),
    };
  });
}

function client(name: string, over: Partial<Client> = {}): Client {
  return {
    name,
    client_id: `c_${name}0k2m4`,
    created_at: ago(40 * day),
    state: 'active',
    tokens: [{ hint: 'adit_…7f3aQx', created_at: ago(40 * day) }],
    session_count: 1,
    claim_count: 2,
    tunnel_count: 2,
    usage: { month: '2026-11', bytes_in: 8.1e9, bytes_out: 61e9, state: 'ok' },
    seen: {
      at: ago(4),
      connected: true,
      node: 'relay-1',
      address: '203.0.113.7:51234',
      transport: 'dtls',
      version: 'v1.0.0',
      os: 'linux',
      arch: 'amd64',
      hostname: `${name}-01`,
    },
    ...over,
  };
}

export const clients = (): Client[] => [
  client('shop', {
    scope: {
      types: ['http', 'https'],
      domains: ['*.shop.example.com', 'shop'],
      tunnels: 5,
      monthly_bytes: 100e9,
      over_quota: 'throttle',
    },
    usage: { month: '2026-11', bytes_in: 8.1e9, bytes_out: 75e9, limit: 100e9, state: 'near' },
    proof: { record: '_adit.DOMAIN', value: 'adit-client=Zm9vYmFy' },
    errors: [
      {
        time: ago(340),
        key: 't_web',
        message: 'nothing listens at the local address 127.0.0.1:3000',
        node: 'relay-1',
        public_url: 'https://shop.relay.example',
      },
    ],
  }),
  client('workshop-nas', {
    seen: {
      at: ago(2),
      connected: true,
      node: 'relay-2',
      address: '[2001:db8:4::19]:40022',
      transport: 'tls',
      version: 'v1.0.0',
      os: 'linux',
      arch: 'arm64',
      hostname: 'nas',
    },
  }),
  client('ci-runners', { session_count: 2, claim_count: 1 }),
  client('old-laptop', {
    session_count: 0,
    seen: { ...client('x').seen!, at: ago(19 * day), connected: false, os: 'darwin' },
  }),
  client('contractor', { session_count: 0, state: 'revoked', revoked_at: ago(3 * day) }),
];

export const sessions: Session[] = clients()
  .slice(0, 3)
  .map((c, i) => ({
    id: `s_${i}`,
    client: c.name,
    client_id: c.client_id,
    instance: `i${i}`,
    address: c.seen!.address!,
    transport: c.seen!.transport!,
    version: 'v1.0.0',
    os: c.seen!.os!,
    arch: c.seen!.arch!,
    hostname: c.seen!.hostname,
    since: ago(3 * day + i * 7000),
    rtt_ms: [12.4, 31, 8.25][i] ?? 1,
    tunnel_count: 2,
    bytes_sent: 8.1e9 * (i + 1),
    bytes_received: 61e9 / (i + 1),
    ...(i === 0 ? { errors: c.errors } : {}),
  }));

const endpoint = (
  id: string,
  type: string,
  url: string,
  target: string,
  over: Partial<Endpoint> = {},
): Endpoint => ({
  id,
  target,
  type,
  mode: 'standard',
  public_url: url,
  clients: ['shop'],
  agent_count: 1,
  visitors: [],
  since: ago(2 * day),
  connections: { open: 12, total: 48_211 },
  bytes: { in: 1.2e9, out: 31e9 },
  policy: false,
  ...over,
});

export const endpoints: Endpoint[] = [
  endpoint('e_1', 'https', 'https://shop.relay.example', 'shop.relay.example', { policy: true }),
  endpoint('e_2', 'https', 'https://www.shop.example.com', 'www.shop.example.com'),
  endpoint('e_3', 'https', 'https://builds.relay.example', 'builds.relay.example', {
    mode: 'balanced',
    clients: ['ci-runners'],
    agent_count: 2,
  }),
  endpoint('e_4', 'tcp', 'tcp://relay.example:20001', 'tcp.20001', {
    clients: ['workshop-nas'],
    connections: { open: 1, total: 96 },
  }),
  endpoint('e_5', 'udp', 'udp://relay.example:20002', 'udp.20002', { clients: ['workshop-nas'] }),
  endpoint('e_6', 'tcp', 'adit://workshop-nas/ssh', 'workshop-nas/ssh', {
    mode: 'private',
    clients: ['workshop-nas'],
    visitors: ['builds-laptop', 'office-pc'],
    connections: { open: 1, total: 9 },
  }),
];

export const claims = [
  ...endpoints.map((e) => ({
    target: e.target,
    client: e.clients[0] ?? '',
    client_id: 'c_1',
    created_at: ago(30 * day),
    running: true,
  })),
  {
    target: 'demo.relay.example',
    client: 'old-laptop',
    client_id: 'c_4',
    created_at: ago(60 * day),
    running: false,
  },
];

export const domains: Domain[] = [
  {
    domain: 'shop.relay.example',
    client: 'shop',
    client_id: 'c_1',
    custom: false,
    running: true,
    certificate: {
      source: 'acme',
      trying: false,
      issuer: "Let's Encrypt",
      not_after: ago(-61 * day),
    },
  },
  {
    domain: 'www.shop.example.com',
    client: 'shop',
    client_id: 'c_1',
    custom: true,
    proved_at: ago(12 * day),
    proof: 'record',
    running: true,
    certificate: {
      source: 'acme',
      trying: false,
      issuer: "Let's Encrypt",
      not_after: ago(-5 * day),
      error:
        'get certificate of www.shop.example.com from https://acme-v02.api.letsencrypt.org/directory: no answer on port 80',
    },
  },
  {
    domain: 'demo.example.org',
    client: 'old-laptop',
    client_id: 'c_4',
    custom: true,
    proof: '',
    running: false,
    certificate: { source: 'acme', trying: false },
  },
];

export const reported: ReportedError[] = [
  {
    time: ago(340),
    key: 't_web',
    public_url: 'https://shop.relay.example',
    message: 'nothing listens at the local address 127.0.0.1:3000',
    node: 'relay-1',
    client: 'shop',
    client_id: 'c_shop0k2m4',
    connected: true,
  },
  {
    time: ago(19 * day),
    key: 't_demo',
    message: 'the local service at nas.local:5001 cannot be reached: no such host',
    node: 'relay-2',
    client: 'old-laptop',
    client_id: 'c_old-laptop0k2m4',
    connected: false,
  },
];

export const policies = (): Policy[] => [
  {
    target: 'shop.relay.example',
    changed_at: ago(5400),
    set_by: 'operator',
    policy: {
      deny: ['192.0.2.0/24', '198.51.100.9'],
      deny_countries: ['US-CA'],
      hours: {
        zone: 'Europe/Berlin',
        open: [{ days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '08:00', to: '18:30' }],
      },
      rate: 20,
      burst: 60,
      max_body: 10 * 1024 ** 2,
      basic_auth: [{ name: 'ann' }, { name: 'bob' }],
      sign_in: {
        provider: 'company',
        emails: ['@example.com', 'carl@partner.example'],
        groups: ['shop-admins'],
      },
      webhooks: [{ path: '/hooks/github', provider: 'github' }],
    },
  },
  {
    target: 'tcp.20001',
    changed_at: ago(8 * day),
    set_by: 'workshop-nas',
    policy: { allow: ['203.0.113.0/24'], shadow: true },
  },
];

const paths = ['/', '/products/17', '/api/cart', '/assets/app.js', '/login', '/api/orders?'];
let nextEvent = 1;
export function event(over: Partial<Access> = {}): Access {
  const n = nextEvent++;
  const code = n % 11 === 0 ? 502 : n % 5 === 0 ? 404 : n % 7 === 0 ? 302 : 200;
  const refused = n % 9 === 0 ? 'deny_countries' : n % 13 === 0 ? 'shadow:allow' : undefined;
  return {
    id: `a_${n}`,
    time: ago(n * 7),
    node: 'relay-1',
    endpoint_id: 'e_1',
    client_id: 'c_shop',
    visitor: n % 3 === 0 ? `2001:db8:9::${n.toString(16)}` : `203.0.113.${(n * 37) % 250}`,
    country: ['DE', 'CN', 'US-CA', 'FR'][n % 4],
    ...(n % 4 === 2 ? { user: n % 8 === 2 ? 'ann' : 'carl@partner.example' } : {}),
    method: n % 6 === 2 ? 'POST' : 'GET',
    host: 'shop.relay.example',
    path: paths[n % paths.length],
    status: refused === 'deny_countries' ? 403 : code,
    ...(refused ? { refused } : {}),
    bytes_in: 420 + n * 3,
    bytes_out: 1800 * (1 + (n % 40)),
    duration_ns: 4_000_000 * (1 + (n % 23)),
    ...over,
  };
}

const node = (name: string, i: number): Node => ({
  id: `n_${i}`,
  name,
  version: 'v1.0.0',
  started_at: ago((9 - i) * day),
  agent_address: `${name}.relay.example:4433`,
  node_address: `10.0.0.${i + 1}:4433`,
  draining: i === 2,
  self: i === 0,
  reachable: true,
  rtt_ms: i * 0.7,
  session_count: 4 - i,
  endpoint_count: 5 - i,
  visitor_count: 40 - 11 * i,
});
export const nodes: Node[] = [
  ...['relay-1', 'relay-2', 'relay-3'].map(node),
  { ...node('relay-4', 3), reachable: false, session_count: 1, visitor_count: 7 },
  {
    ...node('relay-5', 4),
    reachable: false,
    lost_at: ago(2400),
    session_count: 0,
    endpoint_count: 0,
    visitor_count: 0,
  },
];

const hash = (n: number) => n.toString(16).padStart(64, 'a');
const entry = (
  seq: number,
  action: string,
  target: string,
  detail: unknown,
  name = 'ann',
): AuditEntry => ({
  seq,
  time: ago((40 - seq) * 3000),
  node: 'relay-1',
  actor: { kind: 'user', name, address: '203.0.113.9' },
  action,
  target,
  detail,
  prev: hash(seq - 1),
  hash: hash(seq),
});
export const audit: AuditEntry[] = [
  entry(31, 'policy.set', 'shop.relay.example', { rate: 20, users: 2 }),
  entry(30, 'client.rotate', 'shop', { overlap_seconds: 86400 }),
  entry(29, 'client.revoke', 'contractor', undefined, 'bob'),
  entry(28, 'login.refused', 'bob', undefined, 'bob'),
  entry(27, 'token.add', 'prometheus', { scope: 'read' }),
  entry(26, 'user.add', 'bob', { role: 'viewer' }),
  entry(25, 'client.add', 'shop', { scope: { types: ['http', 'https'] } }),
];

export const accounts = (): Account[] => [
  {
    name: 'ann',
    role: 'administrator',
    disabled: false,
    totp: true,
    recovery_code_count: 9,
    created_at: ago(40 * day),
    last_login_at: ago(1300),
  },
  {
    name: 'bob',
    role: 'viewer',
    disabled: false,
    totp: false,
    recovery_code_count: 0,
    created_at: ago(12 * day),
  },
];

export const tokens = (): APIToken[] => [
  {
    id: 'a1b2c3d4e5f60718',
    name: 'prometheus',
    scope: 'read',
    hint: 'x9Qk',
    created_by: 'ann',
    created_at: ago(20 * day),
    last_used_at: ago(9),
  },
];

export const logins = [
  {
    id: '0011223344556677',
    account: 'ann',
    address: '203.0.113.9',
    browser:
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    created_at: ago(1300),
    expires_at: ago(-40_000),
    current: true,
  },
];

export const sinks = (): Sink[] => [
  {
    name: 'siem',
    type: 'webhook',
    url: 'https://siem.example.com/adit',
    has_secret: true,
    events: ['access', 'audit', 'client'],
    refused_only: false,
    enabled: true,
    changed_at: ago(9 * day),
    state: { node: 'relay-1', sent: 481_200, failed: 0, dropped: 0, queued: 3 },
  },
];

export const settings: Settings = {
  node: 'relay-1',
  domain: 'relay.example',
  public_host: 'relay.example',
  any_domain: false,
  geo_database: { file: '/var/lib/GeoIP/country.mmdb', build_at: ago(6 * day) },
  access: { days: 14, bytes: 1024 ** 3, stored_bytes: 3.1e8, oldest: ago(13 * day) },
  schema_version: 1,
  sign_in: {
    callback_url: 'https://sign-in.relay.example/callback',
    providers: [
      {
        name: 'company',
        type: 'oidc',
        issuer: 'https://login.example.com/realms/company',
        asked_at: ago(1),
      },
      { name: 'clients', type: 'github', issuer: 'https://github.com' },
      {
        name: 'partners',
        type: 'oidc',
        issuer: 'https://id.partner.example',
        asked_at: ago(2),
        error:
          'read the configuration of https://id.partner.example: dial tcp 203.0.113.80:443: connect: connection refused',
      },
    ],
  },
  limits: { sessions: 20_000, connections_per_address: 1024, header_time: '10s' },
};

/** What becomes of a visitor who has signed in: members of the company are let in. */
export function signedIn(target: string, q: { email?: unknown; groups?: unknown }): Explanation {
  const who = String(q.email ?? `a member of ${String(q.groups)}`);
  const known = who.endsWith('@example.com') || String(q.groups ?? '').includes('shop-admins');
  const step = known
    ? { rule: 'sign_in', refuses: false, detail: `${who} has signed in with company` }
    : { rule: 'sign_in_who', refuses: true, detail: `${who} is not among those let in` };
  return {
    target,
    node: 'relay-1',
    path: '/',
    allowed: known,
    shadow: false,
    ...(known ? {} : { rule: step.rule, detail: step.detail }),
    steps: [{ rule: 'hours', refuses: false, detail: 'it is Mon 15:04 CET: open' }, step],
  };
}

/** What becomes of a visitor who presents a certificate, or none, where "Home CA" lets in. */
export function presented(target: string, certificate: unknown): Explanation {
  const step = !certificate
    ? { rule: 'client_certificates', refuses: true, detail: 'no certificate was presented' }
    : certificate === home
      ? {
          rule: 'client_certificates',
          refuses: false,
          detail: 'CN=ann presents a certificate that is good until 2036-11-23 13:46:57 UTC',
        }
      : {
          rule: 'client_certificates_issuer',
          refuses: true,
          detail: 'CN=eve is from none of the authorities',
        };
  return {
    target,
    node: 'relay-1',
    allowed: !step.refuses,
    shadow: false,
    ...(step.refuses ? { rule: step.rule, detail: step.detail } : {}),
    steps: [step],
  };
}

/** What becomes of a request to a path with a webhook of Stripe. */
export function hooked(target: string, q: { path?: unknown; signed?: unknown }): Explanation {
  const path = String(q.path);
  const step = q.signed
    ? { rule: 'webhooks', refuses: false, detail: `signed by stripe, for ${path}` }
    : { rule: 'webhooks', refuses: true, detail: `a request to ${path} must be signed by stripe` };
  return {
    target,
    node: 'relay-1',
    path,
    allowed: !step.refuses,
    shadow: false,
    ...(step.refuses ? { rule: step.rule, detail: step.detail } : {}),
    steps: [step],
  };
}
