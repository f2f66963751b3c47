/** A stand-in for the relay: it serves dist and the API of openapi.yaml, and remembers changes. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type {
  Access,
  ErrorCode,
  PolicyDocument,
  Scope,
  SignedIn,
  Sink,
} from '../../src/console/api/types';
import { listen } from '../listen';
import { serveFile } from '../static';
import * as have from './fixtures';

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

type Body = Record<string, unknown>;
type Handler = (
  body: Body,
  match: string[],
  query: URLSearchParams,
  headers: Record<string, unknown>,
) => unknown;
const list = (items: unknown) => ({ items });

/** What the mock lets in. */
export const password = 'correct horse battery';
export const setupCode = 'AAAA-BBBB-CCCC-DDDD';

/** Every object has a tag of its own: what is set is another one. */
const tags = new WeakMap<object, string>();
let lastTag = 0;
function tagOf(what: object): string {
  const tag = tags.get(what) ?? `"${++lastTag}"`;
  tags.set(what, tag);
  return tag;
}

/** Refuses a change that expects something else than what is there. */
function expect(headers: Record<string, unknown>, found: object | undefined): void {
  const wanted = headers['if-match'];
  if ((found ? wanted && wanted !== tagOf(found) : wanted) || (found && headers['if-none-match']))
    throw new Refusal(412, 'precondition_failed', 'it has changed since it was read');
}

export class ConsoleMock {
  session: SignedIn = {
    signed_in: true,
    setup_needed: false,
    account: 'ann',
    role: 'administrator',
    kind: 'user',
    totp: true,
  };
  status = { ...have.status };
  clients = have.clients();
  policies = have.policies();
  /** Domains that were taken from their clients. */
  released = new Set<string>();
  ended: string[] = [];
  audit = have.audit;
  accounts = have.accounts();
  tokens = have.tokens();
  sinks = have.sinks();
  settings = structuredClone(have.settings);
  events: Access[] = Array.from({ length: 60 }, () => have.event());
  /** Signing in asks for this code too. */
  code = '';
  /** Paths that this relay does not know. */
  missing: readonly string[] = [];
  /** Questions that the store does not answer now. */
  away: readonly string[] = [];
  /** What the page asked for, newest last. */
  seen: string[] = [];

  #server: Server | undefined;
  #port = 0;
  #sockets = new Set<Socket>();
  #streams = new Set<ServerResponse>();

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(port = this.#port): Promise<void> {
    const server = createServer((req, res) => void this.#serve(req, res));
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#port = await listen(server, port);
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    this.#streams.clear();
    if (server) await new Promise((done) => server.close(done));
  }

  /** A visit that the live log shows. */
  visit(over: Partial<Access> = {}): void {
    const e = have.event({ time: new Date().toISOString(), ...over });
    this.events.unshift(e);
    for (const res of this.#streams) res.write(`event: access\ndata: ${JSON.stringify(e)}\n\n`);
  }

  /** A policy that is set; by somebody else, if a name is given. */
  set(target: string, policy: PolicyDocument | undefined, by = '') {
    const changed_at = new Date().toISOString();
    const last = this.audit[0]!;
    const action = policy ? 'policy.set' : 'policy.delete';
    const actor = { kind: 'user' as const, name: by || 'ann' };
    this.audit = [
      { ...last, seq: last.seq + 1, time: changed_at, actor, action, target },
      ...this.audit,
    ];
    this.policies = this.policies.filter((p) => p.target !== target);
    if (!policy) return undefined;
    const made = { target, changed_at, policy };
    this.policies = [...this.policies, made];
    return made;
  }

  /** Sets a sink, as somebody else may, too. */
  setSink(name: string, sink: Sink): Sink {
    const made = { ...sink, name, has_secret: !!sink.secret };
    this.sinks = [...this.sinks.filter((s) => s.name !== name), made];
    return made;
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? '/', this.url);
    // The relay's own policy, so that what it blocks is blocked here too.
    res.setHeader(
      'Content-Security-Policy',
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    if (!url.pathname.startsWith('/api/v1/')) return serveFile(url.pathname, res, 'console');
    const path = url.pathname.slice('/api/v1/'.length);
    const asked = `${req.method} ${path}`;
    this.seen.push(asked);
    if (path === 'access/live') {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      res.write(': hello\n\n');
      this.#streams.add(res);
      res.on('close', () => this.#streams.delete(res));
      return;
    }
    let text = '';
    for await (const piece of req) text += String(piece);
    try {
      if (!this.session.signed_in && !/^(session|setup)$/.test(path))
        throw new Refusal(401, 'unauthorized', 'sign in');
      if (this.session.role === 'viewer' && req.method !== 'GET' && path !== 'session')
        throw new Refusal(403, 'forbidden', 'this needs an administrator');
      if (this.away.includes(asked))
        throw new Refusal(503, 'unavailable', 'the store does not answer');
      const body = text ? (JSON.parse(text) as Body) : {};
      const data = this.#answer(asked, body, url.searchParams, req.headers);
      if (data === undefined) return void res.writeHead(204).end();
      const tagged = this.#tagged(data);
      if (tagged) res.setHeader('ETag', tagOf(tagged));
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ data }));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, code, message, field } = error;
      res.writeHead(status, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify({ error: { code, message, field } }));
    }
  }

  #answer(
    asked: string,
    body: Body,
    query: URLSearchParams,
    headers: Record<string, unknown>,
  ): unknown {
    for (const [pattern, handler] of this.#routes) {
      const match = new RegExp(`^${pattern}$`).exec(asked);
      if (match && !this.missing.some((m) => asked.endsWith(m)))
        return handler(body, match.map(decodeURIComponent), query, headers);
    }
    throw new Refusal(404, 'not_found', 'there is nothing at this path');
  }

  /** What an answer has the tag of, if it has one. */
  #tagged(data: unknown): object | undefined {
    const client = this.clients.find((c) => c === data);
    return client
      ? (client.scope ??= {})
      : (this.policies.find((p) => p === data) ?? this.sinks.find((s) => s === data));
  }

  #client(name: string | undefined) {
    const found = this.clients.find((c) => c.name === name);
    if (!found) throw new Refusal(404, 'not_found', `there is no client named ${name}`);
    return found;
  }

  readonly #routes: readonly [string, Handler][] = [
    ['GET session', () => this.session],
    [
      'POST session',
      (b) => {
        if (b.token ? b.token !== 'adit_admin_mock' : b.password !== password)
          throw new Refusal(401, b.token ? 'unauthorized' : 'wrong_login', 'wrong');
        if (this.code && !b.code) throw new Refusal(401, 'code_required', 'send a code', 'code');
        if (this.code && b.code !== this.code)
          throw new Refusal(401, 'wrong_code', 'wrong', 'code');
        return (this.session = { ...this.session, signed_in: true, setup_needed: false });
      },
    ],
    ['DELETE session', () => void (this.session = { ...this.session, signed_in: false })],
    [
      'POST setup',
      (b) => {
        if (b.code !== setupCode) throw new Refusal(401, 'wrong_code', 'wrong', 'code');
        if (String(b.password).length < 10)
          throw new Refusal(
            400,
            'invalid_parameter',
            'the password must have at least 10 characters',
            'password',
          );
        return (this.session = { ...this.session, signed_in: true, setup_needed: false });
      },
    ],
    ['GET status', () => this.status],
    [
      'GET figures',
      (_, __, q) =>
        q.get('span') === 'day'
          ? { node: 'relay-1', step_seconds: 300, items: have.figures(288, 300) }
          : { node: 'relay-1', step_seconds: 10, items: have.figures(360, 10) },
    ],
    ['GET sessions', () => list(have.sessions)],
    ['GET endpoints', () => list(have.endpoints)],
    ['GET claims', () => list(have.claims)],
    ['GET domains', () => list(have.domains.filter((d) => !this.released.has(d.domain)))],
    [
      'DELETE claims/([^/]+)',
      (_, m) => {
        const name = decodeURIComponent(m[1] ?? '');
        if (have.domains.find((d) => d.domain === name)?.running !== false)
          throw new Refusal(409, 'conflict', `${name} is in use now; stop its tunnel first`);
        this.released.add(name);
      },
    ],
    [
      'POST sign-ins/end',
      (b) => {
        const user = String(b.user).toLowerCase();
        if (!user)
          throw new Refusal(
            400,
            'invalid_parameter',
            'user must be an address or a name, of at most 320 bytes',
            'user',
          );
        this.ended.push(user);
        return { user, ended_at: new Date().toISOString() };
      },
    ],
    ['GET errors', () => list(have.reported)],
    ['GET nodes', () => list(have.nodes)],
    ['GET settings', () => this.settings],
    ['GET clients', () => list(this.clients)],
    ['GET clients/([^/]+)', (_, m) => this.#client(m[1])],
    [
      'POST clients',
      (b) => {
        const name = String(b.name);
        if (!/^[\w.-]+$/.test(name))
          throw new Refusal(400, 'invalid_parameter', 'a name has letters and digits', 'name');
        if (this.clients.some((c) => c.name === name))
          throw new Refusal(
            400,
            'invalid_parameter',
            `there is a client named ${name} already`,
            'name',
          );
        this.clients.push({
          ...have.clients()[3]!,
          name,
          seen: undefined,
          scope: b.scope as Scope,
        });
        return { name, client_id: 'c_new', auth_token: 'adit_mock0123456789' };
      },
    ],
    [
      'PATCH clients/([^/]+)',
      (b, m, _, headers) => {
        const client = this.#client(m[1]);
        expect(headers, (client.scope ??= {}));
        if ((b.scope as Scope).domains?.includes('x y'))
          throw new Refusal(
            400,
            'invalid_parameter',
            'scope.domains[0]: "x y" is not a name',
            'scope.domains[0]',
          );
        return Object.assign(client, { scope: b.scope });
      },
    ],
    [
      'POST clients/([^/]+)/rotate',
      (_, m) => ({ name: m[1], client_id: 'c_1', auth_token: 'adit_rotated0123456789' }),
    ],
    [
      'POST clients/([^/]+)/revoke',
      (_, m) =>
        void Object.assign(this.#client(m[1]), {
          revoked_at: new Date().toISOString(),
          session_count: 0,
        }),
    ],
    ['GET policies', () => list(this.policies)],
    [
      'GET policies/([^/]+)',
      (_, m) => {
        const found = this.policies.find((p) => p.target === m[1]);
        if (!found) throw new Refusal(404, 'not_found', 'no policy is set');
        return found;
      },
    ],
    [
      'PUT policies/([^/]+)',
      (b, m, _, headers) => {
        const policy = b as PolicyDocument;
        const found = this.policies.find((p) => p.target === m[1]);
        expect(headers, found);
        if (policy.deny?.includes('x'))
          throw new Refusal(
            400,
            'invalid_parameter',
            'deny[0]: "x" is not an address or CIDR',
            'deny[0]',
          );
        const provider = policy.sign_in?.provider;
        if (provider && !this.settings.sign_in?.providers?.some((p) => p.name === provider))
          throw new Refusal(
            400,
            'invalid_parameter',
            `the relay has no identity provider "${provider}"; it has company, partners`,
            'sign_in.provider',
          );
        return this.set(m[1] ?? '', policy);
      },
    ],
    ['DELETE policies/([^/]+)', (_, m) => void this.set(m[1] ?? '', undefined)],
    [
      'POST policies/([^/]+)/explain',
      (b, m) => {
        const address = String(b.address);
        const bad = address.startsWith('192.0.2.');
        const detail = address + (bad ? ' is in 192.0.2.0/24' : ' is not among the 2 listed');
        if (b.path) return have.hooked(m[1] ?? '', b);
        const asked = this.policies.find((p) => p.target === m[1])?.policy.client_certificates;
        if (asked) return have.presented(m[1] ?? '', b.certificate);
        if (b.email || b.groups) return have.signedIn(m[1] ?? '', b);
        return {
          target: m[1],
          node: 'relay-1',
          allowed: !bad,
          ...(bad ? { rule: 'deny', detail } : {}),
          country: 'DE',
          steps: [
            { rule: 'deny', refuses: bad, detail },
            { rule: 'hours', refuses: false, detail: 'it is Mon 15:04 CET: open' },
          ],
        };
      },
    ],
    [
      'GET access',
      (_, __, q) => {
        const at = Number(q.get('cursor') ?? 0);
        const found = this.events.filter(
          (e) =>
            (!q.get('status') || String(e.status)[0] === q.get('status')?.[0]) &&
            (!q.get('client_id') || e.client_id === q.get('client_id')) &&
            (!q.get('path') || e.path?.startsWith(q.get('path') ?? '')),
        );
        const items = found.slice(at, at + 25);
        const next = at + 25 < found.length ? { next: String(at + 25) } : {};
        return { items, ...next, complete: at + 25 >= found.length };
      },
    ],
    [
      'GET audit',
      (_, __, q) =>
        list(
          this.audit.filter(
            (e) =>
              e.action.startsWith(q.get('action') ?? '') &&
              e.time >= (q.get('since') ?? '') &&
              JSON.stringify(e).includes(q.get('q') ?? ''),
          ),
        ),
    ],
    ['GET audit/verify', () => ({ ok: true, entries: 31, head: have.audit[0]?.hash })],
    ['GET sinks', () => list(this.sinks)],
    [
      'GET sinks/([^/]+)',
      (_, m) => {
        const found = this.sinks.find((s) => s.name === m[1]);
        if (!found) throw new Refusal(404, 'not_found', `there is no sink named ${m[1]}`);
        return found;
      },
    ],
    [
      'PUT sinks/([^/]+)',
      (b, m, _, headers) => {
        expect(
          headers,
          this.sinks.find((s) => s.name === m[1]),
        );
        return this.setSink(m[1] ?? '', b as Sink);
      },
    ],
    ['POST sinks/([^/]+)/test', () => ({ ok: true })],
    ['GET accounts', () => list(this.accounts)],
    [
      'POST accounts',
      (b) => {
        this.accounts.push({
          ...have.accounts()[1]!,
          name: String(b.name),
          role: b.role as 'viewer',
        });
        return this.accounts.at(-1);
      },
    ],
    ['GET tokens', () => list(this.tokens)],
    [
      'POST tokens',
      (b) => ({ ...have.tokens()[0]!, name: String(b.name), token: 'adit_api_mock0123456789' }),
    ],
    ['GET logins', () => list(have.logins)],
    [
      'POST account/totp',
      (b) => {
        if (b.password !== password)
          throw new Refusal(400, 'invalid_parameter', 'the password is wrong', 'password');
        return {
          secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
          uri: 'otpauth://totp/adit%20relay.example:ann?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=adit',
        };
      },
    ],
    [
      'PUT account/totp',
      () => {
        this.session = { ...this.session, totp: true };
        return { recovery_codes: ['abcde-fghij', 'klmno-pqrst', 'uvwxy-z2345'] };
      },
    ],
  ];
}
