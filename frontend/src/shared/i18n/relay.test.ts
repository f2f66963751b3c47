import { expect, test } from 'vitest';
import { sentencesOf, spoken } from './gosentences';
import { relaySentences } from './relay';
import { interpreter } from './sentences';

const translate = interpreter(relaySentences);
const sources = import.meta.glob<string>(
  [
    '../../../../tunnel/relay/{authority,claims,clients,control,control_policy,holding,leave,ports,private,proofs,relay,run,scopes,session,speed}.go',
    '../../../../tunnel/relay/names/names.go',
    '../../../../tunnel/relay/claim/{claim,private}.go',
    '../../../../tunnel/link/listen.go',
  ],
  { query: '?raw', import: 'default', eager: true },
);
const policies = import.meta.glob<string>(
  ['../../../../tunnel/relay/policy/*.go', '!../../../../tunnel/relay/policy/*_test.go'],
  { query: '?raw', import: 'default', eager: true },
);
const signatures = import.meta.glob<string>(
  ['../../../../tunnel/relay/signature/*.go', '!../../../../tunnel/relay/signature/*_test.go'],
  { query: '?raw', import: 'default', eager: true },
);
const set = import.meta.glob<string>('../../../../tunnel/relay/policies/{book,policies}.go', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const certificates = import.meta.glob<string>(
  '../../../../tunnel/relay/policy/{certificates,presented}.go',
  { query: '?raw', import: 'default', eager: true },
);
const makers = [
  { begins: 'Message: ', part: 0 },
  { begins: 'Reason: ', part: 0 },
  { begins: 'message := ', part: 0 },
  { begins: 'p.Code, p.Message = ', part: 1 },
  { begins: 'Invalid(', part: 1 },
  { begins: 'Forbidden(', part: 1 },
  { begins: 'Close(', part: 0 },
  { begins: 'dismiss(', part: 1 },
  { begins: 'lose(', part: 1 },
  { begins: 'string {\n\treturn ', part: 0 },
];
const all = [
  ...Object.values(sources).flatMap((code) => sentencesOf(code, makers)),
  ...Object.values(set).flatMap((code) =>
    sentencesOf(code, [
      { begins: '== 0 {\n\t\treturn ', part: 0 },
      { begins: 'return fmt.Sprintf(', part: 0 },
    ]),
  ),
  ...Object.values(policies).flatMap((code) =>
    sentencesOf(code, [{ begins: 'FieldError{', part: 1, before: 'X: ' }]),
  ),
  ...Object.values(certificates).flatMap((code) =>
    sentencesOf(code, [
      { begins: 'nil, fmt.Errorf(', part: 0, before: 'X: ' },
      { begins: 'nil, errors.New(', part: 0, before: 'X: ' },
      { begins: '"", fmt.Errorf(', part: 0, before: 'X: ' },
    ]),
  ),
  ...Object.values(signatures).flatMap((code) =>
    sentencesOf(code, [{ begins: 'FieldError{', part: 1, before: 'X: ' }]),
  ),
];

test('the test finds what the relay says to agents', () => {
  expect(all.length).toBeGreaterThan(70);
  expect(all).toContain('the relay does not know this auth token, or it was revoked');
  expect(all).toContain('X is taken by another client; choose another');
  expect(all).toContain('replaced by a newer session of the same agent');
  expect(all).toContain('X: has more than X windows');
  expect(all).toContain('X: has more than X certificates');
  expect(all).toContain('the relay has no identity provider X; it has X');
});

test.each([
  ['"no port"', 'no port'],
  ['fmt.Sprintf("%d of %q", len(a), b.c)', 'X of X'],
  ['name(face) + " is taken"', 'X is taken'],
  ['"the time ended on " + c.Expires.UTC().Format("2006")', 'the time ended on X'],
  ['err.Error()', ''],
])('%s says %s', (expression, want) => expect(spoken(expression)).toBe(want));

test.each([...new Set(all)])('%s has a translation', (sentence) =>
  expect(translate(sentence, 'zh-CN')).toMatch(/\p{Script=Han}/u),
);

test('English stays, and what is not known', () => {
  expect(translate('the relay is shutting down', 'en')).toBe('the relay is shutting down');
  expect(translate('something new', 'zh-CN')).toBe('something new');
});
