import { describe, expect, it } from 'vitest';
import type { TunnelPath } from '../api/types';
import {
  checkPaths,
  leads,
  newPath,
  parseTarget,
  pathForms,
  pathsOf,
  readPaths,
  targetText,
  type PathForm,
} from './pathform';

const row = (change: Partial<PathForm> = {}): PathForm => ({
  ...newPath(),
  path: '/api',
  to: '8080',
  ...change,
});
const target = (local_ip: string, local_port: number, local_scheme = 'http') => ({
  local_ip,
  local_port,
  local_scheme,
});

/** Checks rows; what it says by the row's number, not its key. */
function check(rows: PathForm[]): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(checkPaths(rows, '37271')).map(([field, fault]) => [
      field.replace(/\d+/, (key) => String(rows.findIndex((r) => r.key === Number(key)))),
      fault,
    ]),
  );
}

describe('parseTarget', () => {
  it.each<[string, object | string]>([
    ['8080', target('127.0.0.1', 8080)],
    [' 8080 ', target('127.0.0.1', 8080)],
    [':8080', target('127.0.0.1', 8080)],
    ['nas.local:8080', target('nas.local', 8080)],
    ['192.168.1.4:1', target('192.168.1.4', 1)],
    ['[::1]:3000', target('::1', 3000)],
    ['http://localhost:5173/', target('localhost', 5173)],
    ['HTTPS://nas.local:8443', target('nas.local', 8443, 'https')],
    ['https://nas.local', target('nas.local', 443, 'https')],
    ['http://nas.local', target('nas.local', 80)],
    ['h2c://127.0.0.1:50051', target('127.0.0.1', 50_051, 'h2c')],
    ['0', 'form.port.invalid'],
    ['65536', 'form.port.invalid'],
    ['nas.local:0', 'form.port.invalid'],
    ['nas.local:123456', 'form.port.invalid'],
    ['nas.local', 'form.path.to.invalid'],
    ['nas.local:', 'form.path.to.invalid'],
    ['::1', 'form.path.to.invalid'],
    ['https://', 'form.path.to.invalid'],
    ['http://nas.local:80/base', 'form.path.to.invalid'],
    ['http://ann@nas.local:80', 'form.path.to.invalid'],
    ['ftp://nas.local:21', 'form.path.to.invalid'],
    ['my nas:80', 'form.path.to.invalid'],
    ['8080x', 'form.path.to.invalid'],
    ['10.0.0.256:80', 'form.ip.invalid'],
    ['nas-:80', 'form.ip.invalid'],
    ['169.254.169.254:80', 'form.ip.metadata'],
    ['[FD00:EC2::254]:80', 'form.ip.metadata'],
  ])('%j', (text, want) => expect(parseTarget(text)).toEqual(want));
});

describe('targetText', () => {
  it.each(['127.0.0.1:8080', 'https://nas.local:8443', 'h2c://[::1]:50051', '[fe80::1%eth0]:80'])(
    'says %s as parseTarget reads it',
    (text) => {
      const read = parseTarget(text);
      expect(read).toBeTypeOf('object');
      expect(targetText({ path: '/api', ...(read as Omit<TunnelPath, 'path'>) })).toBe(text);
    },
  );
  it('fills in what is left out', () =>
    expect(targetText({ path: '/api', local_port: 80 })).toBe('127.0.0.1:80'));
});

describe('checkPaths', () => {
  it.each([
    ['/a', undefined],
    ['/api', undefined],
    [' /api/v1 ', undefined],
    ['/.well-known', undefined],
    ['/a..b/...', undefined],
    ['/隧道', undefined],
    ['/100%/a b', undefined],
    ['/api?x=1', 'form.path.signs'],
    ['/api#top', 'form.path.signs'],
    ['/a\tb', 'form.path.signs'],
    ['/a%20b', 'form.path.encoded'],
    [`/${'x'.repeat(127)}`, undefined],
    ['', 'form.path.missing'],
    ['  ', 'form.path.missing'],
    ['api', 'form.path.slash'],
    ['/', 'form.path.root'],
    ['/api/', 'form.path.end'],
    ['//', 'form.path.segments'],
    ['//api', 'form.path.segments'],
    ['/api//', 'form.path.segments'],
    ['/api//v1', 'form.path.segments'],
    ['/.', 'form.path.segments'],
    ['/api/../v1', 'form.path.segments'],
    ['/api/./', 'form.path.segments'],
    [`/${'x'.repeat(128)}`, 'form.path.long'],
    [`/${'隧'.repeat(43)}`, 'form.path.long'],
  ])('%j', (path, want) =>
    expect(check([row({ path })])).toEqual(want ? { 'paths-0-path': want } : {}),
  );

  it('finds the rows at fault, both of two that are alike', () => {
    const rows = [
      row({ path: '/api' }),
      row({ path: '/chat', to: '' }),
      row({ path: '/api ', to: '37271', host_header: 'a/b' }),
      row({ path: '/API', to: 'nas.local:37271', host_header: 'nas.local:80' }),
    ];
    expect(check(rows)).toEqual({
      'paths-0-path': 'form.path.twice',
      'paths-1-to': 'form.path.to.missing',
      'paths-2-path': 'form.path.twice',
      'paths-2-to': 'form.port.own',
      'paths-2-host_header': 'form.host.invalid',
    });
  });
});

describe('paths of a tunnel', () => {
  const paths: TunnelPath[] = [
    {
      path: '/api',
      local_ip: '::1',
      local_port: 8443,
      local_scheme: 'https',
      host_header: 'api.internal',
      strip: true,
    },
    { path: '/chat', local_ip: '127.0.0.1', local_port: 9000 },
  ];
  it('come back from the form as they were', () =>
    expect(readPaths(pathForms({ paths }))).toEqual(paths));
  it('lose what goes without saying', () => {
    const [first] = pathForms({ paths: [{ ...paths[1]!, local_scheme: '', host_header: '' }] });
    expect(readPaths([{ ...first!, path: ' /chat ' }])).toEqual([paths[1]]);
  });
  it('are none where an older daemon does not send them', () => {
    expect(pathsOf({})).toEqual([]);
    expect(pathForms({})).toEqual([]);
    expect(leads({})).toEqual([]);
  });
  it('are told with where they lead', () =>
    expect(leads({ paths })).toEqual(['/api → https://[::1]:8443', '/chat → 127.0.0.1:9000']));
  it('have keys that no two share', () => {
    const keys = [...pathForms({ paths }), newPath(), newPath()].map((r) => r.key);
    expect(new Set(keys).size).toBe(4);
  });
});
