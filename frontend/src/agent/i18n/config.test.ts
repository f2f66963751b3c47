import { expect, test } from 'vitest';
import config from '../../../../internal/config/config.go?raw';
import mistakes from '../../../../internal/config/mistake.go?raw';
import validation from '../../../../internal/config/validate.go?raw';
import policy from '../../../../internal/config/policy.go?raw';
import loopback from '../../../../internal/loopback/loopback.go?raw';
import saved from '../../../../internal/textfile/textfile.go?raw';
import text from '../../../../internal/tomltext/tomltext.go?raw';
import { sentencesOf } from '../../shared/i18n/gosentences';
import { mistakeIn } from './daemon';

const file = [config, mistakes, validation].join('\n');

const said = [
  ...sentencesOf(file, [
    { begins: 'Message: ', part: 0 },
    { begins: 'f.Mistake(', part: 3 },
    { begins: 'key, message := ', part: 1 },
    { begins: 'nil, fmt.Errorf(', part: 0 },
  ]),
  ...sentencesOf(saved, [{ begins: 'errors.New(', part: 0 }]),
  // A slip is told by a string of its own.
  ...[...text.matchAll(/^\t\treturn [`"](.*)[`"]$/gm)].map(([, slip]) => slip ?? ''),
];

/** Of the address that a visit listens on. */
const addresses = sentencesOf(loopback, [{ begins: 'errors.New(', part: 0 }]);

/** Of the passwords of a tunnel's visitors. */
const passwords = sentencesOf(policy.slice(policy.indexOf('func withPassword')), [
  { begins: 'errors.New(', part: 0 },
  { begins: 'fmt.Errorf(', part: 0 },
]);

/** Every kind of value that the daemon tells apart. */
const kinds = new Set(
  [...file.matchAll(/"(?:[\w *[\]]+)":\s+"([^"]+)"/g)].map(([, kind]) => kind ?? ''),
);

test('the test finds what is said of adit.toml', () => {
  expect(said).toContain('must be host:port');
  expect(said).toContain('X must be a name, or name:port');
  expect(said).toContain('there is no such key');
  expect(said).toContain('it is in UTF-16: save it as UTF-8');
  expect(said).toContain('write = between a key and its value, not a colon');
  expect(said.length).toBeGreaterThan(17);
  expect(addresses.length).toBe(2);
  expect(passwords.length).toBeGreaterThan(4);
  expect(kinds).toContain('a list, in brackets');
  expect(kinds.size).toBeGreaterThan(8);
});

test.each(said)('%s has a translation', (message) =>
  expect(mistakeIn({ message }, 'zh-CN')).toMatch(/\p{Script=Han}/u),
);

test.each(addresses)('%s has a translation', (message) =>
  expect(mistakeIn({ key: 'visit[1].listen', message }, 'zh-CN')).toMatch(/\p{Script=Han}/u),
);

test.each(passwords)('%s has a translation', (message) =>
  expect(
    mistakeIn(
      { key: 'tunnel[0].policy', message: `basic_auth[0].password_file: ${message}` },
      'zh-CN',
    ),
  ).toMatch(/\p{Script=Han}/u),
);

test.each([...kinds])('that it must be %s has a translation', (kind) => {
  const got = mistakeIn({ message: `must be ${kind}, not a list of tables` }, 'zh-CN');
  expect(got).toMatch(/^须为.+，而不是表的列表$/);
  expect(got).not.toContain(kind === 'true or false' ? 'or' : kind);
});

test.each([
  // What the agent says of a declared tunnel is known with its field.
  [{ key: 'tunnel[2].local_port', message: 'must be 1 to 65535' }, '须为 1 到 65535'],
  [
    { key: 'tunnel[0].proxy_protocol', message: 'is not for udp tunnels' },
    'udp 隧道没有 PROXY 协议',
  ],
  [
    { key: 'visit[0].tunnel', message: 'a private tunnel is called CLIENT/NAME, such as nas/ssh' },
    '私有隧道写作“客户端/名称”，例如 nas/ssh',
  ],
  [
    { key: 'visit[1].listen', message: 'another visit already listens on 127.0.0.1:2222' },
    '已有另一项访问在 127.0.0.1:2222 监听',
  ],
  [{ key: 'visit', message: 'there must be at most 100 visits' }, '最多 100 项访问'],
  [{ key: 'level', message: 'key level is already defined' }, '键 level 重复出现'],
  [
    { key: 'lgo', message: 'there is no such key; did you mean "log"?' },
    '没有这个键；是否想写 "log"？',
  ],
  [
    { message: "unexpected character U+0079 'y' at start of value" },
    "值不能以 U+0079 'y' 开头；若值是字符串，请加引号",
  ],
  [{ key: 'x', message: 'something new' }, 'something new'],
])('%o', (mistake, want) => expect(mistakeIn(mistake, 'zh-CN')).toBe(want));

test('English stays', () => {
  expect(mistakeIn({ key: 'a.b', message: 'must be host:port' }, 'en')).toBe('must be host:port');
});
