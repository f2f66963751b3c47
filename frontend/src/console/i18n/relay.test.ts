import { expect, test } from 'vitest';
import { sentencesOf } from '../../shared/i18n/gosentences';
import { translated } from './relay';

const api = import.meta.glob<string>(
  ['../../../../tunnel/relay/console/*.go', '!../../../../tunnel/relay/console/*_test.go'],
  { query: '?raw', import: 'default', eager: true },
);
const relay = import.meta.glob<string>(
  ['../../../../tunnel/relay/operator/*.go', '!../../../../tunnel/relay/operator/*_test.go'],
  { query: '?raw', import: 'default', eager: true },
);
const policies = import.meta.glob<string>('../../../../tunnel/relay/policies/{book,policies}.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const targets = import.meta.glob<string>('../../../../tunnel/relay/names/names.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const questions = import.meta.glob<string>('../../../../tunnel/relay/accesslog/search.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const sinks = import.meta.glob<string>('../../../../tunnel/relay/sink/sink.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const scopes = import.meta.glob<string>('../../../../tunnel/relay/store/{scope/scope,clients}.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const decisions = import.meta.glob<string>('../../../../tunnel/relay/policy/decide.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const webhooks = import.meta.glob<string>('../../../../tunnel/relay/policy/webhooks.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const certificates = import.meta.glob<string>('../../../../tunnel/relay/policy/certificates.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const names = import.meta.glob<string>('../../../../tunnel/relay/policy/signin.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const files = import.meta.glob<string>('../../../../tunnel/relay/{geo/geo,sentence/sentence}.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});

const of = (
  files: Record<string, string>,
  ...makers: Parameters<typeof sentencesOf>[1][number][]
) => Object.values(files).flatMap((code) => sentencesOf(code, makers));
const all = [
  ...of(
    api,
    { begins: '&Error{', part: 2 },
    { begins: 'invalid(', part: 1 },
    { begins: '.fail(', part: 1 },
    { begins: 'bad(', part: 1, before: 'X ' },
  ),
  ...of(relay, { begins: 'bad(', part: 3 }, { begins: 'Detail = ', part: 0 }),
  ...of(
    policies,
    { begins: '== 0 {\n\t\treturn ', part: 0 },
    { begins: 'return fmt.Sprintf(', part: 0 },
  ),
  ...of(
    targets,
    { begins: 'return "", fmt.Errorf(', part: 0 },
    { begins: 'return "", errors.New(', part: 0 },
  ),
  ...of(questions, { begins: 'FieldError{', part: 1 }),
  ...of(sinks, { begins: 'FieldError{', part: 1, before: 'X: ' }),
  ...of(
    scopes,
    { begins: 'bad(', part: 1, before: 'X: ' },
    { begins: 'ErrName = errors.New(', part: 0 },
  ),
  ...of(decisions, { begins: 'Step{', part: 2 }, { begins: 'add(', part: 2 }),
  ...of(
    names,
    { begins: 'RuleSignIn, true, ', part: 0 },
    { begins: 'RuleSignIn, false, ', part: 0 },
    { begins: 'RuleTries, true, ', part: 0 },
    { begins: 'RuleSignInWho, Detail: ', part: 0 },
    { begins: 'step.Detail = ', part: 0 },
    { begins: 'verdict != rightPassword, ', part: 0 },
  ),
  ...of(
    certificates,
    ...['Issuer', 'Time', 'Who'].map((of) => ({
      begins: `RuleCertificate${of}, Detail: `,
      part: 0,
    })),
    { begins: 'RuleCertificate, Detail: ', part: 0 },
    { begins: 'Allowed: true, Detail: ', part: 0 },
    { begins: 'cmp.Or(d.Detail, ', part: 0 },
    { begins: 'return errors.New(', part: 0 },
    { begins: 'return fmt.Errorf(', part: 0 },
  ),
  ...of(
    webhooks,
    { begins: 'RuleWebhook, Detail: ', part: 0 },
    { begins: 'RuleWebhookPath, Detail: ', part: 0 },
    { begins: 'RuleWebhook, true, ', part: 0 },
    { begins: 'RuleWebhook, false, ', part: 0 },
  ),
];

test('the test finds what the relay says to its operator', () => {
  expect(all.length).toBeGreaterThan(95);
  expect(all).toContain('the password is wrong');
  expect(all).toContain('X is not among the X listed');
  expect(all).toContain('X has signed in with X');
  expect(all).toContain('X is from none of the authorities');
  expect(all).toContain('no certificate was presented');
  expect(all).toContain('visitors sign in with X');
  expect(all).toContain('one of X users is asked for');
  expect(all).toContain('a request to X must be signed by X');
});

test.each([...new Set(all)])('%s has a translation', (sentence) =>
  expect(translated(sentence, 'zh-CN')).toMatch(/\p{Script=Han}/u),
);

// Why a new GeoIP database is not used: of its own, or as of any file under the key.
const database = [
  ...of(files, { begins: 'fmt.Errorf(', part: 0 }).filter((s) => s.startsWith('geo.database: ')),
  ...of(files, { begins: 'fmt.Sprintf(', part: 0 })
    .filter((s) => /^X: .*(no file|may not read|is a folder|cannot be read)/.test(s))
    .map((s) => s.replace('X: ', 'geo.database: ')),
];

test('the test finds what is wrong with a GeoIP database', () => {
  expect(new Set(database).size).toBe(6);
});

test.each(database)('%s has a translation', (sentence) =>
  expect(translated(sentence, 'zh-CN')).toMatch(/\p{Script=Han}/u),
);

test('what varies is kept', () => {
  expect(translated('it is Mon 15:04 CET: closed', 'zh-CN')).toBe('现在是 Mon 15:04 CET：关闭');
  expect(translated('deny[0]: "x" is not an address or CIDR', 'zh-CN')).toBe(
    'deny[0]："x" 不是地址或 CIDR',
  );
});
