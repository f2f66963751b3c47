/**
 * A stand-in for the daemon: it serves dist, the API of openapi.yaml and its
 * event stream, and does what a script tells it. Node alone, no packages.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type {
  Config,
  ErrorCode,
  Events,
  Invitation,
  RequestSummary,
  SocketMessage,
  Status,
  Tunnel,
  TunnelPath,
  TunnelUpdate,
  Visit,
} from '../src/agent/api/types';
import type { PolicyDocument } from '../src/shared/policy/policyform';
import {
  checks,
  speed,
  config,
  detail,
  endpoint,
  tunnelPath,
  someLogs,
  someTunnels,
  socket,
  summary,
} from './fixtures';
import { listen } from './listen';
import { serveFile } from './static';

interface Sent {
  id: number;
  name: string;
  data: string;
}

/** A refusal, as the API words it. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: ErrorCode,
    message: string,
    readonly field?: string,
  ) {
    super(message);
  }
}

type Handler = (body: Record<string, unknown>, match: string[], query: URLSearchParams) => unknown;

/** The token that the mock's relay accepts; others are refused, or malformed. */
export const goodToken = 'adit_mock0123456789abcdefghij';
export const refusedToken = 'adit_refused0123456789abcdef';
/** The daemon's own words for it. */
const refusedByRelay =
  'the relay refused: the relay does not know this auth token, or it was revoked';
export const unreachableToken = 'adit_unreachable0123456789';
/** The relay's own words, where its operator does not let a client set policies. */
const noLeave =
  "the relay refused: the relay's operator has not let this client say who is let in; " +
  'ask for `adit relay client set laptop --own_policies` at the relay';
/** A public port that another tunnel has. */
export const takenPort = 20_099;

export class Mock {
  status: Status = freshStatus();
  tunnels = new Map<string, Tunnel>(someTunnels().map((t) => [t.id, t]));
  /** What the WebSocket among the requests has said; undefined: there is none. */
  said: SocketMessage[] | undefined;
  requests: RequestSummary[] = Array.from({ length: 40 }, (_, i) => summary(i + 1));
  logs = someLogs();
  /** Where the tunnels that are created here can be reached. */
  domain = 'relay.example';
  /** With it, the API asks for this Bearer token. */
  bearer = '';
  /** How many control-plane requests to answer with 409 first. */
  busy = 0;
  /** The request in the middle of which to die, once. */
  dieAt = '';
  /** Who is let in to a tunnel, by its id, as was last sent. */
  policies = new Map<string, PolicyDocument>();
  /** Whether the relay lets this client set policies. */
  mayGuard = true;
  /** Whether adit.toml says who is let in to the tunnels. */
  declaresPolicies = false;
  /** The relay's identity providers; undefined: none, or an older relay. */
  providers: string[] | undefined = ['company', 'partners'];
  /** The relay can let visitors in by their certificates; false: an older relay. */
  certificates = true;
  /** The providers whose webhooks the relay can verify; undefined: an older relay. */
  webhooks: string[] | undefined = ['github', 'slack', 'discord', 'hmac'];
  /** What adit.toml declares of other clients' tunnels. */
  visits: Visit[] = [];
  /** Private tunnels of others that let this client in. */
  invitations: Invitation[] = [];
  /** What tunnels were changed by, newest last. */
  changes: TunnelUpdate[] = [];
  /** What the page asked for, newest last. */
  seen: string[] = [];

  #server: Server | undefined;
  config: Config = { ...config };
  #port = 0;
  #sockets = new Set<Socket>();
  #streams = new Set<ServerResponse>();
  #events: Sent[] = [];
  #next = 1;

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; after a stop, on the same port again. */
  async start(port = this.#port): Promise<void> {
    const server = createServer((req, res) => void this.#serve(req, res));
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#port = await listen(server, port);
    this.#server = server;
  }

  #invited() {
    if (!this.status.connected)
      throw new Refusal(503, 'relay_unreachable', 'the relay does not answer');
    return { items: this.invitations };
  }

  /** Dies as a killed daemon does: every connection breaks at once. */
  async stop(): Promise<void> {
    const closed = new Promise((done) => this.#server?.close(done));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
    this.#streams.clear();
  }

  /** Forgets what only lives in the process, as a restart does. */
  renew(): void {
    this.#events = [];
    this.#next = 1;
    this.status = { ...this.status, pid: this.status.pid + 1, started_at: now() };
  }

  emit<K extends keyof Events>(name: K, data: Events[K]): void {
    const event = { id: this.#next++, name, data: JSON.stringify(data) };
    this.#events = [...this.#events.slice(-5000), event];
    for (const stream of this.#streams) write(stream, event);
  }

  setStatus(change: Partial<Status>): void {
    this.status = { ...this.status, ...change };
    this.emit('status', this.status);
  }

  setTunnel(t: Tunnel, action: 'created' | 'changed' = 'changed'): Tunnel {
    const before = this.tunnels.get(t.id);
    this.tunnels.set(t.id, t);
    this.emit('tunnel', { action, tunnel: t });
    if (t.state === 'running') this.emit('endpoint', { action: 'up', endpoint: endpoint(t, 0, 0) });
    else if (before?.state === 'running')
      this.emit('endpoint', { action: 'down', endpoint: endpoint(before) });
    return t;
  }

  addRequest(change: Partial<RequestSummary> = {}): RequestSummary {
    const n = 100_000 + this.#next;
    const r = summary(n, { kind: 'http', time: now(), ...change });
    this.requests.push(r);
    this.emit('request', r);
    return r;
  }

  // The routes, in the order of openapi.yaml.
  #routes: [string, RegExp, Handler][] = [
    ['GET', /^auth\/status$/, () => this.#auth()],
    ['POST', /^auth\/configure$/, (body) => this.#configure(String(body.auth_token))],
    ['DELETE', /^auth$/, () => this.#signOut()],
    ['GET', /^status$/, () => this.status],
    ['GET', /^config$/, () => this.config],
    ['POST', /^pause$/, () => this.#become({ state: 'paused', connected: false, transport: '' })],
    ['POST', /^resume$/, () => this.#become(connected())],
    ['POST', /^reconnect$/, () => this.#become(connected())],
    ['GET', /^endpoints$/, () => ({ items: this.#running().map((t) => endpoint(t)) })],
    ['GET', /^tunnels$/, () => ({ items: [...this.tunnels.values()] })],
    ['POST', /^tunnels$/, (body) => this.#create(body)],
    ['PATCH', /^tunnels\/([^/]+)$/, (body, [id]) => this.#update(id, body)],
    ['POST', /^tunnels\/([^/]+)\/start$/, (_, [id]) => this.#change(id, { state: 'running' })],
    ['POST', /^tunnels\/([^/]+)\/stop$/, (_, [id]) => this.#change(id, { state: 'stopped' })],
    ['DELETE', /^tunnels\/([^/]+)$/, (_, [id]) => this.#delete(id)],
    ['GET', /^tunnels\/([^/]+)\/policy$/, (_, [id]) => this.#policyOf(id)],
    ['PUT', /^tunnels\/([^/]+)\/policy$/, (body, [id]) => this.#setPolicy(id, body)],
    ['GET', /^visits$/, () => ({ items: this.visits })],
    ['GET', /^invitations$/, () => this.#invited()],
    ['GET', /^requests$/, (_b, _m, query) => this.#list(query)],
    ['DELETE', /^requests$/, () => void (this.requests = [])],
    ['GET', /^requests\.har$/, (_b, _m, query) => this.#archive(query)],
    ['POST', /^requests\.har$/, () => this.#import()],
    ['GET', /^requests\/([^/]+)$/, (_b, [id], query) => this.#detail(id, query)],
    ['POST', /^requests\/([^/]+)\/replay$/, (body, [id]) => this.#replay(id, body)],
    ['GET', /^logs$/, () => ({ items: this.logs })],
    ['POST', /^diagnostics$/, () => ({ items: checks })],
    ['POST', /^speed$/, () => speed],
  ];

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    secure(res);
    const url = new URL(req.url ?? '/', this.url);
    if (!url.pathname.startsWith('/api/v1/')) return serveFile(url.pathname, res);
    const path = url.pathname.slice('/api/v1/'.length);
    const line = `${req.method} ${path}`;
    this.seen.push(line);
    if (line === this.dieAt) {
      this.dieAt = '';
      void this.stop();
      return;
    }
    try {
      if (this.bearer && req.headers.authorization !== `Bearer ${this.bearer}`)
        throw new Refusal(401, 'unauthorized', 'this API asks for a Bearer token');
      if (line === 'GET events') return this.#stream(req, res);
      const body = await read(req);
      if (this.busy > 0 && req.method !== 'GET' && /^(auth|tunnels)/.test(path)) {
        this.busy--;
        throw new Refusal(
          409,
          'control_busy',
          'another change is being made; try again in a moment',
        );
      }
      for (const [method, pattern, handler] of this.#routes) {
        const match = pattern.exec(path);
        if (method !== req.method || !match) continue;
        const data = handler(body, match.slice(1).map(decodeURIComponent), url.searchParams);
        answer(res, data, line);
        return;
      }
      throw new Refusal(404, 'not_found', `there is no ${path}`);
    } catch (error) {
      refuse(res, error);
    }
  }

  #stream(req: IncomingMessage, res: ServerResponse): void {
    res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
    res.write('retry: 1000\n\n');
    const after = Number(req.headers['last-event-id'] ?? Number.NaN);
    if (!Number.isNaN(after))
      for (const event of this.#events.filter((e) => e.id > after)) write(res, event);
    else write(res, { id: this.#next - 1, name: 'status', data: JSON.stringify(this.status) });
    this.#streams.add(res);
    res.on('close', () => this.#streams.delete(res));
  }

  #running(): Tunnel[] {
    return [...this.tunnels.values()].filter((t) => t.state === 'running');
  }

  #auth() {
    const { configured, connected: authenticated, relay, last_error } = this.status;
    return {
      configured,
      authenticated,
      client_id: configured ? 'c_01hq3kd2' : '',
      relay,
      token_hint: configured ? 'adit_…Zk3v9Q' : '',
      configured_at: configured ? this.status.started_at : null,
      last_error,
    };
  }

  #configure(token: string) {
    if (token === refusedToken)
      throw new Refusal(400, 'invalid_token', refusedByRelay, 'auth_token');
    if (token === unreachableToken)
      throw new Refusal(503, 'relay_unreachable', 'relay.example:4433 did not answer within 15 s');
    if (token !== goodToken)
      throw new Refusal(400, 'invalid_token', 'its check sum is wrong', 'auth_token');
    this.#become({ ...connected(), configured: true });
    return this.#auth();
  }

  #signOut(): void {
    this.#become({ ...freshStatus(), ...unconfigured });
  }

  #become(change: Partial<Status>): Status {
    this.setStatus(change);
    return this.status;
  }

  #create(body: Record<string, unknown>): Tunnel {
    if (body.domain === 'taken')
      throw new Refusal(
        400,
        'relay_rejected',
        'the relay refuses: the name taken is taken',
        'domain',
      );
    if (body.remote_port === takenPort)
      throw new Refusal(
        400,
        'relay_rejected',
        `the relay refused: the port ${takenPort} is taken`,
        'remote_port',
      );
    const { policy, ...rest } = body;
    if (policy && !this.mayGuard) throw new Refusal(400, 'relay_rejected', noLeave, 'policy');
    const id = `t_new${this.#next}`;
    if (policy) this.policies.set(id, policy as PolicyDocument);
    const name = String(body.name ?? body.domain ?? `brave-${this.#next}`);
    const made = {
      ...someTunnels()[0],
      ...withPaths(rest),
      id,
      name,
      created_at: now(),
    } as Tunnel;
    made.public_url =
      made.mode === 'private'
        ? `adit://workshop-nas/${String(body.domain ?? name)}`
        : `${made.type}://${String(body.domain ?? name)}.${this.domain}`;
    return this.setTunnel(made, 'created');
  }

  #find(id = ''): Tunnel {
    const t = this.tunnels.get(id);
    if (!t) throw new Refusal(404, 'not_found', `there is no tunnel ${id}`);
    return t;
  }

  #update(id: string | undefined, body: Record<string, unknown>): Tunnel {
    this.changes.push(body);
    return this.#change(id, body);
  }

  #change(id: string | undefined, body: Record<string, unknown>): Tunnel {
    return this.setTunnel({ ...this.#find(id), ...withPaths(body), error: '' } as Tunnel);
  }

  /** As the relay does, it never tells a password or a secret again. */
  #policyOf(id = '') {
    const { basic_auth, webhooks, ...rest } = this.policies.get(this.#find(id).id) ?? {};
    const policy = {
      ...rest,
      ...(basic_auth && { basic_auth: basic_auth.map(({ name }) => ({ name })) }),
      ...(webhooks && { webhooks: webhooks.map((w) => ({ ...w, secrets: undefined })) }),
    };
    const set = this.policies.has(id);
    return {
      policy,
      editable: this.mayGuard && !this.declaresPolicies,
      declared: this.declaresPolicies,
      set_by: set ? 'workshop-nas' : '',
      changed_at: set ? now() : null,
      ...(this.providers && { sign_in_providers: this.providers }),
      ...(this.certificates && { client_certificates: true }),
      ...(this.webhooks && { webhook_providers: this.webhooks }),
    };
  }

  #setPolicy(id = '', body: Record<string, unknown>) {
    const wanted = body as PolicyDocument;
    if (!this.mayGuard)
      throw new Refusal(400, 'relay_rejected', 'the relay refused: it is not yours');
    if (wanted.deny?.some((a) => !/^[0-9a-f.:/]+$/i.test(a)))
      throw new Refusal(
        400,
        'relay_rejected',
        'the relay refused: deny[0]: not an address',
        'deny[0]',
      );
    this.policies.set(this.#find(id).id, wanted);
    return this.#policyOf(id);
  }

  #delete(id: string | undefined): void {
    const t = this.#find(id);
    this.tunnels.delete(t.id);
    if (t.state === 'running') this.emit('endpoint', { action: 'down', endpoint: endpoint(t) });
    this.emit('tunnel', { action: 'deleted', tunnel: t });
  }

  #list(query: URLSearchParams) {
    const before = query.get('before');
    const end = before ? this.requests.findIndex((r) => r.id === before) : this.requests.length;
    const limit = Number(query.get('limit') ?? 200);
    return { items: this.requests.slice(Math.max(0, end - limit), end).reverse() };
  }

  #detail(id: string | undefined, query: URLSearchParams) {
    if (id === 'r_socket' && this.said) return socket(this.said);
    const found = this.requests.find((r) => r.id === id);
    if (!found) throw new Refusal(404, 'not_found', `there is no request ${id}`);
    return detail(found, query.get('reveal') === 'true');
  }

  #replay(id: string | undefined, body: Record<string, unknown>) {
    const { method, path } = body as Partial<RequestSummary>;
    const found = this.requests.find((r) => r.id === id);
    const change = { ...(method && { method }), ...(path && { path }) };
    return detail(
      this.addRequest({
        ...found,
        id: `r_replay${this.#next}`,
        replay_of: id,
        time: now(),
        ...change,
      }),
      false,
    );
  }

  /** The archive of all; as the daemon does, it knows no other status than these. */
  #archive(query: URLSearchParams) {
    const status = query.get('status') ?? '';
    if (status && !/^[1-5](xx|\d\d)$/.test(status))
      throw new Refusal(
        400,
        'invalid_parameter',
        'status must be an HTTP status such as 404, or a class such as 4xx',
        'status',
      );
    const entries = this.requests
      .filter((r) => r.kind === 'http' && query.get('kind') !== 'flow')
      .map((r) => ({
        request: { method: r.method, url: `https://${r.host}${r.path}` },
        response: { status: r.status ?? 0 },
        ...(r.state === 'failed' && { comment: 'connection refused' }),
      }));
    return { log: { version: '1.2', creator: {}, entries } };
  }

  #import() {
    this.requests.push(
      summary(999_999, { id: 'r_imported', kind: 'http', imported: true, path: '/imported' }),
    );
    return { added: 1 };
  }
}

/** As the daemon does, it shows every part of a path, and the longest first. */
function withPaths(body: Record<string, unknown>): Record<string, unknown> {
  const paths = body.paths as TunnelPath[] | undefined;
  if (paths?.some((p) => p.path === '/refused'))
    throw new Refusal(400, 'invalid_parameter', 'paths: /refused is not to be led away', 'paths');
  const longer = (a: TunnelPath, b: TunnelPath) => b.path.length - a.path.length;
  return paths ? { ...body, paths: paths.map((p) => tunnelPath(p.path, p)).sort(longer) } : body;
}

const now = () => new Date().toISOString();

const connected = (): Partial<Status> => ({
  state: 'connected',
  connected: true,
  relay: 'relay.example:4433',
  client_name: 'workshop-nas',
  transport: 'dtls',
  rtt_ms: 23.4,
  connected_since: now(),
  last_error: '',
});

export const unconfigured: Partial<Status> = {
  configured: false,
  connected: false,
  state: 'unconfigured',
  relay: '',
  client_name: undefined,
  transport: '',
  rtt_ms: 0,
  connected_since: null,
};

function freshStatus(): Status {
  return {
    configured: true,
    endpoint_count: 6,
    version: 'v1.4.0',
    os: 'linux',
    arch: 'amd64',
    pid: 4711,
    started_at: new Date(Date.now() - 93_784_000).toISOString(),
    bytes: { in: 18_400_000, out: 1_274_000_000 },
    ...connected(),
  } as Status;
}

/** The headers of the real daemon, so that what they forbid fails here too. */
function secure(res: ServerResponse): void {
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader(
    'Content-Security-Policy',
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
      "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  res.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('X-Content-Type-Options', 'nosniff');
}

async function read(req: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of req) text += String(chunk);
  return text ? (JSON.parse(text) as Record<string, unknown>) : {};
}

function write(res: ServerResponse, event: Sent): void {
  res.write(`id: ${event.id}\nevent: ${event.name}\ndata: ${event.data}\n\n`);
}

function answer(res: ServerResponse, data: unknown, line: string): void {
  if (data === undefined) {
    res.writeHead(204).end();
    return;
  }
  res.writeHead(line === 'POST tunnels' ? 201 : 200, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify(line === 'GET requests.har' ? data : { data }));
}

function refuse(res: ServerResponse, error: unknown): void {
  const r = error instanceof Refusal ? error : new Refusal(500, 'internal', String(error));
  res.writeHead(r.status, { 'Content-Type': 'application/json' });
  res.end(JSON.stringify({ error: { code: r.code, message: r.message, field: r.field } }));
}
