import { describe, expect, it } from 'vitest';
import type { Tunnel } from '../api/types';
import {
  check,
  clashes,
  emptyForm,
  formOf,
  apart,
  mayBecomeOrigin,
  parseOrigin,
  toCreate,
  toCreates,
  toUpdate,
  type TunnelForm,
} from './tunnelform';
import { visitCommand } from './privatetunnel';
import { newPath, type PathForm } from './pathform';

const form = (change: Partial<TunnelForm> = {}): TunnelForm => ({
  ...emptyForm,
  local_port: '3000',
  ...change,
});

const tunnel: Tunnel = {
  id: 't_1',
  name: 'shop',
  type: 'https',
  mode: 'standard',
  local_ip: '127.0.0.1',
  local_port: 3000,
  local_scheme: '',
  domain: 'shop',
  remote_port: 0,
  host_header: '',
  request_headers: { 'X-Env': 'prod', Cookie: '' },
  response_headers: {},
  paths: [],
  visitors: [],
  proxy_protocol: '',
  inspect: true,
  ephemeral: false,
  declared: false,
  public_url: 'https://shop.relay.example',
  state: 'running',
  error: '',
  created_at: '2026-05-04T10:20:30Z',
};

describe('check', () => {
  it.each<[string, Partial<TunnelForm>, object]>([
    ['the least that is needed', {}, {}],
    ['no port', { local_port: '' }, { local_port: 'form.port.missing' }],
    ['port 0', { local_port: '0' }, { local_port: 'form.port.invalid' }],
    ['port 65536', { local_port: '65536' }, { local_port: 'form.port.invalid' }],
    ['a port with letters', { local_port: '3e3' }, { local_port: 'form.port.invalid' }],
    ['the page itself', { local_port: '37271' }, { local_port: 'form.port.own' }],
    ['its port elsewhere', { local_port: '37271', local_ip: '192.168.1.4' }, {}],
    ['half an address', { local_ip: '10.0.0' }, { local_ip: 'form.ip.invalid' }],
    ['an address out of range', { local_ip: '10.0.0.256' }, { local_ip: 'form.ip.invalid' }],
    ['IPv6', { local_ip: '::1' }, {}],
    ['a host name', { local_ip: 'nas.local' }, {}],
    ['an address with a space', { local_ip: 'my nas' }, { local_ip: 'form.ip.invalid' }],
    ['cloud metadata', { local_ip: '169.254.169.254' }, { local_ip: 'form.ip.metadata' }],
    ['cloud metadata, IPv6', { local_ip: 'FD00:EC2::254' }, { local_ip: 'form.ip.metadata' }],
    ['a full name', { domain: 'shop.example.com' }, {}],
    ['a URL for a name', { domain: 'https://shop' }, { domain: 'form.domain.invalid' }],
    ['a name ending in a hyphen', { domain: 'shop-' }, { domain: 'form.domain.invalid' }],
    ['a star alone', { domain: '*.' }, { domain: 'form.domain.invalid' }],
    ['a star within', { domain: 'a.*.shop' }, { domain: 'form.domain.invalid' }],
    ['all names below one', { domain: '*.shop.example.com' }, {}],
    ['a bad name that TCP does not have', { type: 'tcp', domain: '!' }, {}],
    [
      'a bad public port',
      { type: 'udp', remote_port: '70000' },
      { remote_port: 'form.port.invalid' },
    ],
    ['a public port that HTTPS does not have', { remote_port: '70000' }, {}],
    ['a Host with a port', { host_header: 'localhost:3000' }, {}],
    ['a Host with a slash', { host_header: 'a/b' }, { host_header: 'form.host.invalid' }],
    ['headers', { request_headers: 'X-Env: a\nCookie:' }, {}],
    [
      'headers that are none',
      { request_headers: 'X-Env', response_headers: 'A: b\na: c' },
      { request_headers: 'form.headers.invalid', response_headers: 'form.headers.twice' },
    ],
    ['a private name', { type: 'tcp', mode: 'private', domain: 'SSH' }, {}],
    [
      'a private name with a dot',
      { type: 'tcp', mode: 'private', domain: 'ssh.lan' },
      { domain: 'form.label.invalid' },
    ],
    [
      'a private name for all below one',
      { type: 'tcp', mode: 'private', domain: '*.ssh' },
      { domain: 'form.label.invalid' },
    ],
    ['a bad public port in private', { type: 'tcp', mode: 'private', remote_port: '70000' }, {}],
    ['a password', { password: 'ä'.repeat(36) }, {}],
    ['a long password', { password: 'ä'.repeat(37) }, { password: 'form.password.long' }],
    ['a long password that tcp does not have', { type: 'tcp', password: 'x'.repeat(73) }, {}],
    ['visitors', { type: 'tcp', mode: 'private', visitors: 'laptop, phone.2\n*' }, {}],
    [
      'a visitor that is no client',
      { type: 'tcp', mode: 'private', visitors: 'ann@example.com' },
      { visitors: 'form.visitors.invalid' },
    ],
    [
      'a visitor that is given twice',
      { type: 'tcp', mode: 'private', visitors: 'laptop\nLaptop' },
      { visitors: 'form.visitors.twice' },
    ],
    [
      '101 visitors',
      { type: 'tcp', mode: 'private', visitors: Array.from({ length: 101 }, (_, i) => i).join() },
      { visitors: 'form.visitors.most' },
    ],
    ['bad visitors that a public one does not have', { type: 'tcp', visitors: '!' }, {}],
    ['bad visitors that HTTPS does not have', { mode: 'private', visitors: '!' }, {}],
    ['headers that TCP does not have', { type: 'tcp', request_headers: 'X-Env' }, {}],
    // The daemon's own bound.
    ['a name of 64', { name: '隧'.repeat(64) }, {}],
    ['a name of 65', { name: 'x'.repeat(65) }, { name: 'form.name.long' }],
    ['a name of another alphabet', { domain: '*.bücher.商店.example' }, {}],
    ['a machine of another alphabet', { local_ip: 'büro.lan' }, {}],
    ['a sign that no alphabet has', { domain: 'shop☺' }, { domain: 'form.domain.invalid' }],
    ['six ports', { type: 'udp', ports: '6' }, {}],
    ['no port at all', { type: 'udp', ports: '0' }, { ports: 'form.ports.invalid' }],
    [
      'more ports than there are',
      { type: 'tcp', local_port: '65535', ports: '2' },
      { ports: 'form.ports.end' },
    ],
    ['ports that a web service has not', { type: 'https', ports: '0' }, {}],
  ])('%s', (_, change, want) => expect(check(form(change), '37271')).toEqual(want));

  it('has the mistakes of paths, where there are paths', () => {
    const row = { ...newPath(), path: 'api', to: '37271' };
    expect(check(form({ paths: [row] }), '37271')).toEqual({
      [`paths-${row.key}-path`]: 'form.path.slash',
      [`paths-${row.key}-to`]: 'form.port.own',
    });
    expect(check(form({ type: 'tls', paths: [row] }), '37271')).toEqual({});
  });
});

describe('toCreate', () => {
  it('brings the policy that asks for a password, where visitors can be asked', () => {
    const typed = { password: ' hush hush ' };
    expect(toCreate(form(typed)).policy).toEqual({
      basic_auth: [{ name: 'guest', password: ' hush hush ' }],
    });
    expect(toCreate(form({ ...typed, type: 'tcp' }))).not.toHaveProperty('policy');
    expect(toCreate(form({}))).not.toHaveProperty('policy');
  });
  it('sends the defaults of the contract, and nothing that was left empty', () => {
    expect(toCreate(form())).toEqual({
      type: 'https',
      mode: 'standard',
      local_ip: '127.0.0.1',
      local_port: 3000,
    });
  });

  it('is one for each port, where the type has ports', () => {
    const ports = { local_port: '27015', remote_port: '20015', ports: '2' };
    const of = (change: Partial<TunnelForm>) =>
      toCreates(form({ ...ports, ...change })).map((t) => [t.local_port, t.remote_port]);
    expect(of({ type: 'udp' })).toEqual([
      [27_015, 20_015],
      [27_016, 20_016],
    ]);
    expect(of({ type: 'tcp', mode: 'private' })).toEqual([[27_015, undefined]]);
    expect(of({ type: 'https' })).toEqual([[27_015, undefined]]);
  });

  it('leaves out what the type does not have', () => {
    const got = toCreate(
      form({
        type: 'udp',
        domain: 'shop',
        host_header: 'x',
        request_headers: 'X-Env: a',
        paths: [{ ...newPath(), path: '/api', to: '8080' }],
        proxy_protocol: 'v1',
      }),
    );
    expect(Object.keys(got).sort()).toEqual(['local_ip', 'local_port', 'mode', 'type']);
  });

  it('sends headers by name', () => {
    expect(
      toCreate(form({ request_headers: 'X-Env: a\n\n', response_headers: 'Server:' })),
    ).toMatchObject({ request_headers: { 'X-Env': 'a' }, response_headers: { Server: '' } });
  });

  it('sends paths with what they are', () => {
    const paths = [
      { ...newPath(), path: '/api', to: '8080' },
      { ...newPath(), path: '/chat', to: 'h2c://nas.local:90', strip: true, host_header: ' chat ' },
    ];
    expect(toCreate(form({ paths }))).toMatchObject({
      paths: [
        { path: '/api', local_ip: '127.0.0.1', local_port: 8080 },
        {
          path: '/chat',
          local_ip: 'nas.local',
          local_port: 90,
          local_scheme: 'h2c',
          host_header: 'chat',
          strip: true,
        },
      ],
    });
  });

  it('sends every choice', () => {
    expect(
      toCreate(
        form({
          type: 'tcp',
          remote_port: '20022',
          inspect: false,
          ephemeral: true,
          proxy_protocol: 'v2',
          name: ' ssh ',
        }),
      ),
    ).toMatchObject({
      remote_port: 20_022,
      inspect: false,
      ephemeral: true,
      proxy_protocol: 'v2',
      name: 'ssh',
    });
  });
});

describe('a private tunnel', () => {
  const was: Tunnel = {
    ...tunnel,
    type: 'tcp',
    mode: 'private',
    local_port: 22,
    domain: 'ssh',
    request_headers: {},
    visitors: ['laptop', 'phone'],
    public_url: 'adit://nas/ssh',
  };
  const open: Tunnel = { ...was, mode: 'standard', domain: '', visitors: [], remote_port: 20_022 };
  const typed = { type: 'tcp', mode: 'private', remote_port: '20022', domain: ' ssh ' } as const;

  it('is asked for with a name and visitors, and no public port', () =>
    expect(toCreate(form({ ...typed, visitors: 'laptop, phone' }))).toEqual({
      type: 'tcp',
      mode: 'private',
      local_ip: '127.0.0.1',
      local_port: 3000,
      domain: 'ssh',
      visitors: ['laptop', 'phone'],
    }));
  it('is of type tcp or udp, and its fields with it', () => {
    expect(toCreate(form({ ...typed, type: 'udp', visitors: 'laptop' }))).toEqual({
      type: 'udp',
      mode: 'private',
      local_ip: '127.0.0.1',
      local_port: 3000,
      domain: 'ssh',
      visitors: ['laptop'],
    });
    expect(toCreate(form({ ...typed, type: 'tls', visitors: 'laptop' }))).toEqual({
      type: 'tls',
      mode: 'standard',
      local_ip: '127.0.0.1',
      local_port: 3000,
      domain: 'ssh',
    });
    expect(toCreate(form({ ...typed, mode: 'standard', visitors: 'laptop' }))).toEqual({
      type: 'tcp',
      mode: 'standard',
      local_ip: '127.0.0.1',
      local_port: 3000,
      remote_port: 20_022,
    });
  });
  it('keeps its visitors in whatever order, and tells all if one changed', () => {
    const before = formOf(was);
    expect(before.visitors).toBe('laptop\nphone');
    expect(toUpdate({ ...before, visitors: 'phone,laptop' }, was)).toBeUndefined();
    expect(toUpdate({ ...before, visitors: '*' }, was)).toEqual({ visitors: ['*'] });
    expect(toUpdate({ ...before, visitors: '' }, was)).toEqual({ visitors: [] });
  });
  it('becomes public without a word of what it had', () =>
    expect(
      toUpdate({ ...formOf(was), mode: 'standard', domain: 'nas', visitors: '*' }, was),
    ).toEqual({ mode: 'standard' }));
  it('is made of a public one without a word of its port', () =>
    expect(
      toUpdate({ ...formOf(open), mode: 'private', remote_port: '20023', domain: 'ssh' }, open),
    ).toEqual({ mode: 'private', domain: 'ssh' }));
  it('knows of no visitors where the daemon is older', () => {
    const older: Partial<Tunnel> = { ...open };
    delete older.visitors;
    expect(toUpdate(formOf(older as Tunnel), older as Tunnel)).toBeUndefined();
  });
  it.each([
    ['adit://nas/ssh', 22, 'adit visit nas/ssh 2222'],
    ['adit://nas.home/web', 80, 'adit visit nas.home/web 8080'],
    ['adit://nas/db', 5432, 'adit visit nas/db 5432'],
    ['adit://nas/db', 0, 'adit visit nas/db'],
    ['', 22, ''],
    ['tcp://relay.example:20022', 22, ''],
    // It is for a shell.
    ['adit://nas/ssh;reboot', 22, ''],
    ['adit://nas/$(reboot)', 22, ''],
    ['adit://-x/ssh', 22, ''],
  ])('%s before port %s is visited by %j', (public_url, local_port, command) =>
    expect(visitCommand({ public_url, local_port })).toBe(command),
  );
});

describe('toUpdate', () => {
  it('is nothing if nothing changed', () =>
    expect(toUpdate(formOf(tunnel), tunnel)).toBeUndefined());
  it('is only what changed', () => {
    expect(toUpdate({ ...formOf(tunnel), local_port: '3001', domain: '' }, tunnel)).toEqual({
      local_port: 3001,
      domain: '',
    });
  });
  it('has all headers of a direction that changed, and none to remove them', () => {
    const change = { response_headers: 'Server:', request_headers: 'Cookie:\nX-Env: prod' };
    expect(toUpdate({ ...formOf(tunnel), ...change }, tunnel)).toEqual({
      response_headers: { Server: '' },
    });
    expect(toUpdate({ ...formOf(tunnel), request_headers: '' }, tunnel)).toEqual({
      request_headers: {},
    });
  });
  it('has all paths if one changed, and none to remove them', () => {
    const api = { path: '/api', local_ip: '127.0.0.1', local_port: 8080 };
    const chat = { path: '/chat', local_ip: '::1', local_port: 9000, strip: true };
    const led: Tunnel = {
      ...tunnel,
      paths: [
        { ...chat, local_scheme: 'http', host_header: '' },
        { ...api, strip: false },
      ],
    };
    const { paths, ...rest } = formOf(led);
    const [first, second] = paths as [PathForm, PathForm];
    expect(toUpdate({ ...rest, paths }, led)).toBeUndefined();
    // In whatever order: the daemon has one of its own.
    expect(toUpdate({ ...rest, paths: [second, first] }, led)).toBeUndefined();
    expect(toUpdate({ ...rest, paths: [{ ...first, strip: false }, second] }, led)).toEqual({
      paths: [{ path: '/chat', local_ip: '::1', local_port: 9000 }, api],
    });
    expect(toUpdate({ ...rest, paths: [second] }, led)).toEqual({ paths: [api] });
    expect(toUpdate({ ...rest, paths: [] }, led)).toEqual({ paths: [] });
  });
  it('knows of no paths where the daemon is older', () => {
    const older: Partial<Tunnel> = { ...tunnel };
    delete older.paths;
    const form = formOf(older as Tunnel);
    expect(toUpdate(form, older as Tunnel)).toBeUndefined();
    expect(
      toUpdate({ ...form, paths: [{ ...newPath(), path: '/api', to: '8080' }] }, older as Tunnel),
    ).toEqual({ paths: [{ path: '/api', local_ip: '127.0.0.1', local_port: 8080 }] });
  });
});

describe('clashes', () => {
  it.each<[string, Partial<Tunnel>, boolean]>([
    ['nothing', {}, false],
    ['something else', { name: 'store' }, false],
    ['the same', { local_port: 4000 }, true],
    ['the same to the same', { local_port: 3001 }, false],
    ['what the page does not send', { state: 'stopped' }, false],
  ])('others changed %s', (_, theirs, want) =>
    expect(clashes({ local_port: 3001 }, tunnel, { ...tunnel, ...theirs })).toBe(want),
  );
  it('a header that others have added would go', () =>
    expect(
      clashes({ request_headers: { 'X-Env': 'dev' } }, tunnel, {
        ...tunnel,
        request_headers: { ...tunnel.request_headers, 'X-Key': '1' },
      }),
    ).toBe(true));
});

describe('an address that is typed where a part is asked for', () => {
  it('is taken apart wherever it stands', () => {
    const parts = { local_ip: '192.168.1.5', local_port: '8080', local_scheme: 'http' };
    expect(apart(form({ local_port: 'http://192.168.1.5:8080' }))).toMatchObject(parts);
    expect(apart(form({ local_ip: '192.168.1.5:8080' }))).toMatchObject(parts);
    expect(check(apart(form({ local_port: 'localhost:3000' })))).toEqual({});
  });
  it('is none while it is a port, or a name alone', () => {
    expect(apart(form())).toEqual(form());
    expect(apart(form({ local_port: 'localhost' })).local_port).toBe('localhost');
    expect(mayBecomeOrigin('30000')).toBe(false);
    expect(mayBecomeOrigin('l')).toBe(true);
  });
});

describe('parseOrigin', () => {
  it.each([
    ['http://localhost:5173/x?y', 'localhost', '5173', 'http'],
    ['https://nas.local', 'nas.local', '443', 'https'],
    ['192.168.1.4:8080', '192.168.1.4', '8080', 'http'],
    ['[::1]:3000', '::1', '3000', 'http'],
  ])('%s', (text, local_ip, local_port, local_scheme) =>
    expect(parseOrigin(text)).toEqual({ local_ip, local_port, local_scheme }),
  );
  it.each(['3000', 'localhost', '', '::1', 'a b:80'])('leaves %s alone', (text) =>
    expect(parseOrigin(text)).toBeUndefined(),
  );
});
