import { expect, test } from 'vitest';
import code from '../../../../localapi/diagnose.go?raw';
import looks from '../../../../tunnel/agent/diagnose.go?raw';
import ways from '../../../../tunnel/agent/diagnosis/check.go?raw';
import { checks, someTunnels, someVisits } from '../../../e2e/fixtures';
import { sentencesOf } from '../../shared/i18n/gosentences';
import { prefs } from '../../shared/stores/prefs.svelte';
import { clause, saidOfService, translated } from './daemon';

/** What the daemon's diagnostics say, with X where something varies. */
function sentences(): string[] {
  const found: string[] = [];
  for (const line of code.split('\n')) {
    const said = /(?:Tried|Result|Advice)(?::|,? \w*\.?\w* ?\+?=) (.*)/.exec(line)?.[1];
    if (!said) continue;
    for (const part of line.matchAll(
      /(?:Tried|Result|Advice)(?:: | \+?= )((?:fmt\.Sprintf\()?"[^}]*)/g,
    )) {
      const joined = (part[1] ?? '')
        .replace(/"\s*\+\s*[\w.()]+\s*\+\s*"/g, 'X')
        .replace(/"\s*\+\s*[\w.()]+/g, 'X"');
      const text = /"((?:[^"\\]|\\.)*)"/.exec(joined)?.[1];
      if (text && /[a-z]{2}/.test(text)) found.push(text.replace(/%[.\d]*[a-z](:\/\/%s)?/g, 'X'));
    }
  }
  return found;
}

test('the test finds the sentences of the diagnostics', () => {
  expect(sentences().length).toBeGreaterThan(25);
  expect(sentences()).toContain('the auth token');
});

test.each(sentences())('%s has a translation', (sentence) => {
  // What is added to a result begins with a comma.
  const whole = sentence.startsWith(', ') ? `X${sentence}` : sentence;
  expect(translated(whole, 'zh-CN')).toMatch(/[\u4e00-\u9fff]/);
});

const agentLooks = sentencesOf(looks + ways, [
  { begins: 'Tried: ', part: 0 },
  { begins: 'Result: ', part: 0 },
  { begins: 'c.Result = ', part: 0 },
  { begins: 'Advice = diagnosis.Failed, ', part: 1 },
  { begins: 'Advice = diagnosis.Warning, ', part: 1 },
  { begins: 'Advice = Failed, ', part: 1 },
  { begins: 'c.Status, c.Advice = ', part: 1 },
  { begins: '\tc.Advice = ', part: 0 },
  { begins: 'udp.Advice = ', part: 0 },
]);

test('the test finds what the agent looked at', () => {
  expect(agentLooks.length).toBeGreaterThan(12);
  expect(agentLooks).toContain('reach X over X');
});

test.each(agentLooks)('%s has a translation', (sentence) =>
  expect(translated(sentence, 'zh-CN')).toMatch(/[\u4e00-\u9fff]/),
);

test('a token that is of no use is said to be, with the reason', () => {
  const said =
    'the configured token cannot be used: not an auth token: it is too long; configure a new one';
  expect(translated(said, 'zh-CN')).toBe('配置的令牌无法使用：不是认证令牌：内容过长；请重新配置');
});

test('what varies is kept, and English stays', () => {
  expect(translated('TCP to relay.example.com:4433', 'zh-CN')).toBe(
    '到 relay.example.com:4433 的 TCP',
  );
  expect(translated('TCP to relay.example.com:4433', 'en')).toBe('TCP to relay.example.com:4433');
  expect(translated('something new', 'zh-CN')).toBe('something new');
});

test('why a service is not reached, with its path if it has one', () => {
  const why = 'nothing listens at the local address 127.0.0.1:8080';
  prefs.lang = 'zh-CN';
  expect(saidOfService(`/api: ${why}`)).toBe(`/api: ${clause(why)}`);
  expect(saidOfService(`/api: ${why}`)).toMatch(/\p{Script=Han}/u);
  prefs.lang = 'en';
  expect(saidOfService(why)).toBe('Nothing listens at the local address 127.0.0.1:8080');
});

const sources = import.meta.glob<string>(
  [
    '../../../../tunnel/agent/{errors,run,status,auth,claims,serve,save,remove,declared,tunnels,hold,replay,diagnose,visit}.go',
    '../../../../tunnel/agent/definition/{normalize,paths,private,declared,visits}.go',
    '../../../../tunnel/agent/forward/{stream,flow,replay}.go',
    '../../../../tunnel/agent/visits/visits.go',
    '../../../../internal/udpflow/udpflow.go',
    '../../../../tunnel/agent/diagnosis/speed.go',
    '../../../../tunnel/agent/control/{client,claim,errors,policy,speed,visit}.go',
    '../../../../tunnel/agent/origin/{origin,guard,dialer,tls}.go',
    '../../../../tunnel/wire/{token,headers,paths,private}.go',
    '../../../../service/own.go',
    '../../../../localapi/*.go',
    '!../../../../localapi/*_test.go',
    '!../../../../localapi/diagnose.go',
  ],
  { query: '?raw', import: 'default', eager: true },
);
// What no page shows: it goes to logs and to the start of the program.
const unseen = [
  /^read |^ask |^make |^an event of the relay/,
  /the relay's answer to|^its head is larger/,
  /^X: X$/,
  // How the program is put together and set up, and parts of what is whole elsewhere.
  /^lift |^write |^serve |^local API: |^local_api\.|^not an auth token$|^there is no X$/,
  /must be RFC 3339|^X (is|must|has|takes) |^\[local_api\]|^listen/,
];

/** What the code says with X where something varies, for each place that makes a sentence. */
function refusals(): string[] {
  const makes =
    /(Message: |message: |message :?= |cmp\.Or\(last, |return relay \+ |return "|return fmt\.Sprintf\(|fmt\.Errorf\(|errors\.New\(|tokenError\((?:fmt\.Sprintf\()?|badJSON\(|[iI]nvalid\("\w*", |notFound\()(?:fmt\.Sprintf\()?(?=[\w.]* ?\+? ?")(.*)/;
  const found = new Set<string>();
  for (const [file, code] of Object.entries(sources))
    for (const line of code.split('\n')) {
      const [, how = '', rest = ''] = makes.exec(line) ?? [];
      // A chain of texts and values, up to what follows it.
      const chain = /^(?:(?:[\w.]+|"(?:[^"\\]|\\.)*")(?:\([\w.]*\))?(?: \+ |(?=[,)}\s]|$)))+/.exec(
        rest,
      )?.[0];
      if (!chain?.includes('"')) continue;
      let text = [...chain.matchAll(/"((?:[^"\\]|\\.)*)"|([\w.]+(?:\([\w.]*\))?)/g)]
        .map(([, said, value]) => (value === undefined ? said : 'X'))
        .join('')
        .replace(/\\"/g, '"')
        .replace(/%[.\d]*[a-z]/g, 'X');
      if (how.startsWith('return relay')) text = `X${text}`;
      const field = /[iI]nvalid\("(\w+)", $/.exec(how)?.[1];
      if (field && file.includes('/agent/')) text = `${field}: ${text}`;
      if (text.endsWith(' ')) text += 'X';
      if (how === 'notFound(') text = `there is no ${text}`;
      if (!/[a-z]+ [a-z]+ /.test(`${text} `) || unseen.some((p) => p.test(text))) continue;
      found.add(text);
    }
  return [...found];
}

test('the test finds what the agent and the local API refuse with', () => {
  expect(refusals().length).toBeGreaterThan(60);
  expect(refusals()).toContain('local_port: must be 1 to 65535');
  expect(refusals()).toContain('nothing listens at the local address X');
});

test.each(refusals())('%s has a translation', (sentence) => {
  expect(translated(sentence, 'zh-CN')).toMatch(/[\u4e00-\u9fff]/);
});

test.each([
  [
    'the relay at relay.example:4433 refused the token: the auth token was revoked; ask its operator for a new one',
    '位于 relay.example:4433 的中继拒绝了令牌：认证令牌已被吊销；请向其运营者索取新的令牌',
  ],
  [
    'the relay refused: the name shop.relay.example is taken by another client; choose another',
    '中继拒绝了请求：名称 shop.relay.example 已被其他客户端占用，请换一个',
  ],
  [
    "the relay refused: the tcp port 20001 is in use on the relay's machine; choose another",
    '中继拒绝了请求：tcp 端口 20001 在中继所在的机器上已被使用，请换一个',
  ],
  [
    'nothing answers for the relay at [2001:db8::1]:4433; it may be down, or the port may be wrong',
    '位于 [2001:db8::1]:4433 的中继没有响应，它可能已停止，或端口不对',
  ],
  [
    'HTTPS_PROXY is not an address such as http://proxy.example:3128; correct it and restart adit',
    'HTTPS_PROXY 的值不是类似 http://proxy.example:3128 的地址；请更正后重启 adit',
  ],
  [
    'the proxy proxy.example:3128 of HTTPS_PROXY or ALL_PROXY does not lead to the relay at relay.example:4433: it answered 407 Proxy Authentication Required',
    'HTTPS_PROXY 或 ALL_PROXY 所设的代理 proxy.example:3128 未能通往位于 relay.example:4433 的中继：它的回答是 407 Proxy Authentication Required',
  ],
  [
    'the local service at nas.local:80 cannot be reached: no such host',
    '无法连接 nas.local:80 的本地服务：没有这个主机名',
  ],
])('%s is said as one sentence', (sentence, want) =>
  expect(translated(sentence, 'zh-CN')).toBe(want),
);

/** What the page is drawn with where no daemon runs. */
const drawn = [
  ...checks.flatMap((c) => [c.tried, c.result, c.advice]),
  ...[...someTunnels(), ...someVisits()].map((of) => of.error),
].filter((said) => /[a-z]+ [a-z]+/.test(said));

test('some of what the page is drawn with are sentences', () => {
  expect(drawn.length).toBeGreaterThan(10);
});

test.each(drawn)('%s is what the daemon says', (sentence) => {
  expect(translated(sentence, 'zh-CN')).toMatch(/[\u4e00-\u9fff]/);
});
