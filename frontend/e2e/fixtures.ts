/** What the mock daemon knows at its start, and makers of more. */
import type {
  Check,
  Config,
  Endpoint,
  LogEntry,
  RequestDetail,
  RequestSummary,
  SocketMessage,
  Tunnel,
  TunnelPath,
  Visit,
  SpeedReport,
} from '../src/agent/api/types';
import type { PolicyDocument } from '../src/shared/policy/policyform';

const minute = 60_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

export function tunnel(n: number, change: Partial<Tunnel> = {}): Tunnel {
  const name = change.name ?? `service-${n}`;
  const type = change.type ?? 'https';
  const hidden = change.mode === 'private';
  const web = type === 'http' || type === 'https' || type === 'tls';
  return {
    id: `t_${String(n).padStart(4, '0')}`,
    name,
    type,
    mode: 'standard',
    local_ip: '127.0.0.1',
    local_port: 3000 + (n % 1000),
    local_scheme: 'http',
    domain: web || hidden ? name : '',
    remote_port: web || hidden ? 0 : 20_000 + n,
    host_header: '',
    request_headers: {},
    response_headers: {},
    paths: [],
    visitors: [],
    proxy_protocol: '',
    inspect: true,
    ephemeral: false,
    declared: false,
    public_url: hidden
      ? `adit://workshop-nas/${name}`
      : web
        ? `${type === 'http' ? 'http' : 'https'}://${name}.relay.example`
        : `${type}://relay.example:${20_000 + n}`,
    state: 'running',
    error: '',
    created_at: ago((2000 - n) * minute),
    ...change,
  };
}

/** A path as the daemon shows it. */
export const tunnelPath = (path: string, change: Partial<TunnelPath> = {}): TunnelPath => ({
  path,
  local_ip: '127.0.0.1',
  local_port: 8080,
  local_scheme: 'http',
  host_header: '',
  strip: false,
  ...change,
});

export function endpoint(t: Tunnel, open = 1, total = 12): Endpoint {
  return {
    id: `e_${t.id}`,
    tunnel_id: t.id,
    name: t.name,
    type: t.type,
    mode: t.mode,
    public_url: t.public_url,
    local: `${t.local_ip}:${t.local_port}`,
    state: 'running',
    since: t.created_at,
    error: '',
    connections: { open, total },
    bytes: { in: total * 1800, out: total * 74_000 },
  };
}

export function someTunnels(): Tunnel[] {
  return [
    tunnel(1, { name: 'shop', local_port: 3000 }),
    tunnel(2, {
      name: 'api',
      local_port: 8080,
      mode: 'balanced',
      paths: [
        tunnelPath('/assets/images', {
          local_ip: 'nas.local',
          local_port: 8443,
          local_scheme: 'https',
        }),
        tunnelPath('/chat', { local_port: 9000, strip: true, host_header: 'chat.internal:9000' }),
      ],
    }),
    tunnel(3, { name: 'ssh', type: 'tcp', local_port: 22, local_ip: '192.168.1.20' }),
    tunnel(4, {
      name: 'docs',
      type: 'http',
      local_port: 8000,
      declared: true,
      paths: [tunnelPath('/search', { local_port: 7700, strip: true })],
    }),
    tunnel(5, { name: 'game', type: 'udp', local_port: 27_015 }),
    tunnel(6, { name: 'staging', state: 'stopped', local_port: 5173, public_url: '' }),
    tunnel(7, {
      name: 'mail',
      type: 'tls',
      state: 'failed',
      local_port: 993,
      error:
        'the relay refused: the name mail.relay.example is taken by another client; choose another',
      public_url: '',
    }),
    tunnel(8, {
      name: 'desktop',
      type: 'tcp',
      mode: 'private',
      local_port: 3389,
      visitors: ['laptop', 'office-pc'],
    }),
  ];
}

/** What adit.toml declares of other clients' tunnels. */
export const someVisits = (): Visit[] => [
  {
    tunnel: 'studio/files',
    type: 'tcp',
    listen: '127.0.0.1:4450',
    state: 'listening',
    error: '',
    connections: { open: 1, total: 4 },
    bytes: { in: 51_200, out: 20_480_000 },
  },
  {
    tunnel: 'studio/ssh',
    type: 'tcp',
    listen: '127.0.0.1:2222',
    state: 'failed',
    error: 'cannot listen: bind: address already in use; adit retries automatically',
    connections: { open: 0, total: 0 },
    bytes: { in: 0, out: 0 },
  },
];

const paths = [
  '/',
  '/orders?page=2&sort=created',
  '/api/v1/items/4711',
  '/assets/app-5f3a9c.js',
  '/login',
  '/webhooks/payment',
  '/search?q=%E9%9A%A7%E9%81%93',
];
const methods = ['GET', 'GET', 'GET', 'POST', 'GET', 'PUT', 'DELETE'];
const statuses = [200, 200, 304, 201, 200, 404, 500, 302];

export function summary(n: number, change: Partial<RequestSummary> = {}): RequestSummary {
  const flow = n % 23 === 0;
  const status = statuses[n % statuses.length];
  return {
    id: `r_${n}`,
    kind: flow ? 'flow' : 'http',
    tunnel_id: flow ? 't_0003' : n % 3 ? 't_0001' : 't_0002',
    tunnel_name: flow ? 'ssh' : n % 3 ? 'shop' : 'api',
    type: flow ? 'tcp' : 'https',
    time: new Date(Date.now() - (20_000 - n) * 700).toISOString(),
    visitor: `203.0.113.${n % 250}:${40_000 + (n % 20_000)}`,
    state: 'done',
    duration_ms: 2 + ((n * 37) % 900) / 3,
    bytes_in: 400 + (n % 90) * 11,
    bytes_out: 900 + ((n * 7919) % 400_000),
    ...(flow
      ? {}
      : {
          method: methods[n % methods.length],
          host: 'shop.relay.example',
          path: paths[n % paths.length],
          status,
          content_type: 'application/json',
        }),
    ...change,
  };
}

export function detail(r: RequestSummary, reveal: boolean): RequestDetail {
  if (r.kind === 'flow') return r;
  const secret = (value: string) => (reveal ? { value } : { value: '', redacted: true });
  const answer = {
    id: 4711,
    name: 'Grubenlampe',
    price: 39.9,
    tags: ['隧道', 'lamp', 'brass'],
    stock: { warehouse: 'Freiberg', count: 12, reserved: null },
    available: true,
  };
  const text = JSON.stringify(answer);
  return {
    ...r,
    url: `https://${r.host}${r.path}`,
    curl: `curl -X ${r.method} 'https://${r.host}${r.path}'`,
    request: {
      line: `${r.method} ${r.path} HTTP/1.1`,
      proto: 'HTTP/1.1',
      headers: [
        { name: 'Host', value: r.host ?? '' },
        {
          name: 'User-Agent',
          value: 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0',
        },
        { name: 'Accept', value: 'application/json, text/plain, */*' },
        { name: 'Authorization', ...secret('Bearer not-a-real-one') },
        { name: 'X-Forwarded-For', value: r.visitor.split(':')[0] ?? '' },
      ],
      body: r.method === 'POST' ? { size: 27, text: '{"quantity":2,"gift":false}' } : { size: 0 },
    },
    response: {
      line: `HTTP/1.1 ${r.status} OK`,
      proto: 'HTTP/1.1',
      headers: [
        { name: 'Content-Type', value: 'application/json; charset=utf-8' },
        { name: 'Content-Encoding', value: 'gzip' },
        { name: 'Set-Cookie', ...secret('session=none') },
      ],
      body:
        r.path === '/assets/app-5f3a9c.js'
          ? {
              size: 300,
              base64: btoa(
                String.fromCharCode(...Array.from({ length: 300 }, (_, i) => (i * 7) % 256)),
              ),
            }
          : { size: text.length, text, encoding: 'gzip' },
    },
  };
}

/** A WebSocket that is open, and what was said over it. */
export function socket(messages: SocketMessage[]): RequestDetail {
  const r = summary(41, {
    id: 'r_socket',
    state: 'open',
    method: 'GET',
    path: '/chat',
    status: 101,
  });
  const message = (line: string) => ({
    line,
    proto: 'HTTP/1.1',
    headers: [{ name: 'Upgrade', value: 'websocket' }],
    body: { size: 0 },
  });
  return {
    ...r,
    url: `wss://${r.host}/chat`,
    request: message('GET /chat HTTP/1.1'),
    response: message('HTTP/1.1 101 Switching Protocols'),
    messages,
  };
}

export function someLogs(): LogEntry[] {
  const lines: [LogEntry['level'], string, LogEntry['fields']][] = [
    ['info', 'daemon starts', { version: 'v1.4.0', listen: '127.0.0.1:37271' }],
    ['debug', 'dialling relay', { relay: 'relay.example:4433', transport: 'dtls' }],
    ['info', 'session is up', { relay: 'relay.example:4433', transport: 'dtls', rtt_ms: 23.4 }],
    ['info', 'tunnel is up', { tunnel: 'shop', url: 'https://shop.relay.example' }],
    [
      'warn',
      'origin does not answer',
      { tunnel: 'api', origin: '127.0.0.1:8080', error: 'connection refused' },
    ],
    [
      'error',
      'tunnel failed',
      {
        tunnel: 'mail',
        error:
          'the relay refused: the name mail.relay.example is taken by another client; choose another',
      },
    ],
  ];
  return Array.from({ length: 60 }, (_, i) => {
    const [level, message, fields] = lines[i % lines.length] as (typeof lines)[number];
    return { time: ago((60 - i) * 20_000), level, message, fields };
  });
}

export const checks: Check[] = [
  {
    name: 'clock',
    status: 'ok',
    tried: "this machine's clock",
    result: '2026-11-23T13:46:57Z',
    advice: '',
  },
  {
    name: 'relay_dns',
    status: 'ok',
    tried: 'the address of relay.example',
    result: '198.51.100.7',
    advice: '',
  },
  {
    name: 'relay_tcp',
    status: 'ok',
    tried: 'TCP to relay.example:4433',
    result: 'the relay accepts connections',
    advice: '',
  },
  {
    name: 'relay_udp',
    status: 'warning',
    tried: 'UDP to relay.example:4433',
    result: 'the session runs over TCP, which is slower on bad networks',
    advice:
      'Allow UDP to this port through the firewall; the session then switches to UDP automatically.',
  },
  {
    name: 'local_service',
    status: 'failed',
    tried: '127.0.0.1:8080, the local service of the tunnel api',
    result: 'connection refused',
    advice:
      "Start the service on 127.0.0.1:8080, or change the tunnel's local address; visitors are turned away until then.",
  },
  {
    name: 'local_service',
    status: 'skipped',
    tried: '127.0.0.1:27015, the local service of the tunnel game',
    result: 'a UDP service does not show whether it is running',
    advice: '',
  },
];

export const speed: SpeedReport = {
  items: [
    {
      transport: 'dtls',
      in_use: true,
      rtt_ms: 23.4,
      bytes_per_second: { in: 610_000, out: 598_000 },
      error: '',
    },
    {
      transport: 'tls',
      in_use: false,
      rtt_ms: 23.6,
      bytes_per_second: { in: 11_700_000, out: 4_800_000 },
      error: '',
    },
  ],
  advice:
    'On this network, UDP is slower than TCP. To use TCP, set transport = "tls" under [session] in adit.toml.',
};

export const config: Config = {
  config_file: '/etc/adit/adit.toml',
  config_file_exists: true,
  state_dir: '/var/lib/adit',
  settings: [
    { key: 'http_listen', value: '127.0.0.1:37271', source: 'default' },
    { key: 'local_api.allowed_origins', value: ['https://nas.example'], source: 'file' },
    { key: 'local_api.bearer_token', value: '(set)', source: 'file', secret: true },
    { key: 'inspector.memory', value: '64MiB', source: 'environment' },
    { key: 'log.level', value: 'info', source: 'flag' },
  ],
};

/** What is wrong with its file, where something is. */
export const mistake: NonNullable<Config['error']> = {
  message: 'must be 1 to 65535',
  line: 14,
  key: 'tunnel[2].local_port',
};

/** Who is let in where a policy asks who it is. */
export const guarded: PolicyDocument = {
  basic_auth: [{ name: 'ann' }],
  sign_in: { provider: 'company', emails: ['@example.com'], groups: ['shop-admins'] },
  webhooks: [
    { path: '/hooks/github', provider: 'github' },
    { path: '/hooks/ci', provider: 'hmac', header: 'X-CI-Signature', prefix: 'sha256=' },
  ],
};
