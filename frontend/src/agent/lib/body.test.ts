import { describe, expect, it } from 'vitest';
import { dumpLineLength, fromBase64, hexDump, jsonTokens, prettyJson } from './body';
import { headersText, parseHeaders } from './headers';

describe('prettyJson', () => {
  it('indents', () => expect(prettyJson(' {"a":[1]}')).toBe('{\n  "a": [\n    1\n  ]\n}'));
  it.each(['', 'hello', '12', '{"a":', '<html>'])('leaves %s alone', (text) =>
    expect(prettyJson(text)).toBeUndefined(),
  );
  it.each([
    ['{"id":12345678901234567890,"n":1.0}', '{\n  "id": 12345678901234567890,\n  "n": 1.0\n}'],
    ['{"b":1,"10":2,"9":3,"b":4}', '{\n  "b": 1,\n  "10": 2,\n  "9": 3,\n  "b": 4\n}'],
    ['["\\u0041\\"","a:[ ,]"]', '[\n  "\\u0041\\"",\n  "a:[ ,]"\n]'],
    ['{"a":{},"b":[ ]}', '{\n  "a": {},\n  "b": []\n}'],
  ])('shows %s as it was sent', (text, want) => expect(prettyJson(text)).toBe(want));
  it('does not answer a few bytes with megabytes of indents', () => {
    const deep = '['.repeat(4000) + ']'.repeat(4000);
    expect(prettyJson(deep)?.length ?? 0).toBeLessThan(1e6);
  });
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
  const letters = new TextEncoder().encode('adit digs on\n');
  it.each([
    [16, ['0000  61 64 69 74 20 64 69 67  73 20 6f 6e 0a           adit digs on.']],
    [8, ['0000  61 64 69 74 20 64 69 67  adit dig', '0008  73 20 6f 6e 0a           s on.']],
  ])('shows bytes and letters, %i a line', (perLine, lines) =>
    expect(hexDump(letters, perLine).split('\n')).toEqual(lines),
  );
  it('stops at its limit', () =>
    expect(hexDump(new Uint8Array(100), 16, 32).split('\n')).toHaveLength(2));
  it.each([
    [200, 16],
    [72, 16],
    [71, 8],
    [39, 8],
    [38, 4],
    [0, 4],
  ])('in %i characters it has %i bytes a line', (characters, bytes) => {
    expect(dumpLineLength(characters)).toBe(bytes);
    if (characters > 0)
      expect(hexDump(new Uint8Array(16), bytes).split('\n')[0]?.length).toBeLessThanOrEqual(
        characters,
      );
  });
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
