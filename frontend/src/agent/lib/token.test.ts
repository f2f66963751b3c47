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
