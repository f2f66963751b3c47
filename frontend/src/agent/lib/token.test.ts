import { describe, expect, it } from 'vitest';
import { findToken, looksLikeToken } from './token';

const token = 'adit_AbCdEf0123456789-_xyz';

describe('findToken', () => {
  it.each([
    ['the token alone', token],
    ['spaces and line breaks around it', `  \n${token}\r\n`],
    ['quotes', `"${token}"`],
    ['a command', `adit login ${token}`],
    ['a line of a file', `ADIT_AUTH_TOKEN=${token}`],
  ])('takes %s', (_, pasted) => expect(findToken(pasted)).toBe(token));

  // As the relay makes them: version, fingerprint, secret, address, check sum.
  const bytes = `\x01${'\xe5'.repeat(32)}${'\x3f'.repeat(32)}relay.example:4433\x90\x0a:1`;
  const real = `adit_${btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
  const [one, two, three] = [real.slice(0, 60), real.slice(60, 118), real.slice(118)];
  it.each([
    ['lines of a terminal', `${one}\n${two}\n${three}\n`],
    ['lines of a mail, with words after it', `adit login ${one}\r\n  ${two} ${three}\r\nThanks`],
    ['words after it', `${real}\nThanks a lot`],
    ['a client named after it', `adit login ${real} nas`],
  ])('puts together what stands in %s', (_, pasted) => expect(findToken(pasted)).toBe(real));

  it('gives back what holds no token', () => expect(findToken(' hello ')).toBe('hello'));
});

describe('looksLikeToken', () => {
  it.each([
    [token, true],
    ['adit_short', false],
    ['', false],
    ['eyJhbGciOiJIUzI1NiJ9.e30', false],
    [`${token} and more`, false],
  ])('%s: %s', (text, want) => expect(looksLikeToken(text)).toBe(want));
});
