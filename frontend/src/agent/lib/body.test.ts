import { describe, expect, it } from 'vitest';
import { fromBase64, hexDump, jsonTokens, prettyJson } from './body';
import { headersText, parseHeaders } from './headers';

describe('prettyJson', () => {
  it('indents', () => expect(prettyJson(' {"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}'));
  it.each(['', 'hello', '12', '{"a":', '<html>'])('leaves %s alone', (text) =>
    expect(prettyJson(text)).toBeUndefined(),
  );
});

describe('jsonTokens', () => {
  const text = '{\n  "a \\" b": -1.5e3,\n  "c": [true, null, "x: 1"]\n}';
  it('joined is the text', () =>
    expect(
      jsonTokens(text)
        .map((x) => x.text)
        .join(''),
    ).toBe(text));
  it('tells the kinds apart', () =>
    expect(
      jsonTokens(text)
        .filter((x) => x.kind !== 'plain')
        .map((x) => x.kind),
    ).toEqual(['key', 'number', 'key', 'word', 'word', 'string']));
});

describe('hexDump', () => {
  it('shows bytes and letters', () =>
    expect(hexDump(new TextEncoder().encode('adit\n'))).toBe(
      `00000000  61 64 69 74 0a${' '.repeat(9)}  ${' '.repeat(23)}  adit.`,
    ));
  it('stops at its limit', () =>
    expect(hexDump(new Uint8Array(100), 32).split('\n')).toHaveLength(2));
  it('takes no bytes from what is not base64', () => expect(fromBase64('###')).toHaveLength(0));
});

describe('headers', () => {
  it('reads what it wrote', () => {
    const items = [
      { name: 'Accept', value: '*/*' },
      { name: 'X-Empty', value: '' },
      { name: 'X-Colon', value: 'a: b' },
    ];
    expect(parseHeaders(headersText(items))).toEqual({ ok: true, items });
  });
  it('leaves hidden values out', () =>
    expect(headersText([{ name: 'Cookie', value: '', redacted: true }])).toBe(''));
  it.each([
    ['Accept: a\nno colon here', 2],
    ['Bad Name: x', 1],
    [': x', 1],
  ])('says which line is wrong: %j', (text, line) =>
    expect(parseHeaders(text)).toEqual({ ok: false, line }),
  );
});
