import { describe, expect, it } from 'vitest';
import { EventParser } from './sse';

const stream =
  ': hello\n\nid: 7\nevent: status\ndata: {"a":1}\n\nid: 8\r\nevent: log\r\ndata: one\r\ndata: two\r\n\r\ndata:bare\n\n';
const want = [
  { id: '7', name: 'status', data: '{"a":1}' },
  { id: '8', name: 'log', data: 'one\ntwo' },
  { id: '8', name: 'message', data: 'bare' },
];

describe('EventParser', () => {
  it('reads a whole stream', () => {
    expect(new EventParser().push(stream)).toEqual(want);
  });

  it('reads the same wherever the stream is cut', () => {
    for (let cut = 0; cut <= stream.length; cut++) {
      const parser = new EventParser();
      const got = [...parser.push(stream.slice(0, cut)), ...parser.push(stream.slice(cut))];
      expect(got, `cut at ${cut}`).toEqual(want);
    }
  });

  it('gives nothing for an event that has no data', () => {
    expect(new EventParser().push('event: tunnel\nid: 3\n\n')).toEqual([]);
  });

  it('keeps what is not whole yet', () => {
    const parser = new EventParser();
    expect(parser.push('data: half')).toEqual([]);
    expect(parser.push('\n')).toEqual([]);
    expect(parser.push('\n')).toEqual([{ id: '', name: 'message', data: 'half' }]);
  });
});
