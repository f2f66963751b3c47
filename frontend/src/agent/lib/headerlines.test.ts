import { describe, expect, it } from 'vitest';
import { headersText, parseHeaders } from './headerlines';

describe('parseHeaders', () => {
  it.each<[string, object | string]>([
    ['', {}],
    ['X-Env: prod', { 'X-Env': 'prod' }],
    ['  X-Env :a:b \r\n\n Server: \n', { 'X-Env': 'a:b', Server: '' }],
    ['X-Env: é\tb', { 'X-Env': 'é\tb' }],
    ['X-Env', 'form.headers.invalid'],
    [': a', 'form.headers.invalid'],
    ['X Env: a', 'form.headers.invalid'],
    ['X-Env: a\u0000b', 'form.headers.invalid'],
    ['X-Env: a\nx-env:', 'form.headers.twice'],
    ['constructor: a', { constructor: 'a' }],
  ])('%j', (text, want) => expect(parseHeaders(text)).toEqual(want));
});

describe('headersText', () => {
  it('is what parseHeaders reads', () => {
    const fields = { 'X-Env': 'a: b', Server: '', 'X-Api-Key': 'k' };
    expect(headersText(fields)).toBe('Server:\nX-Api-Key: k\nX-Env: a: b');
    expect(parseHeaders(headersText(fields))).toEqual(fields);
  });
});
