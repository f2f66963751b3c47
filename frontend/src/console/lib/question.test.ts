import { describe, expect, it } from 'vitest';
import { emptyQuestion, questionOf } from './question';

describe('a question', () => {
  it('leaves out what is empty', () =>
    expect(
      questionOf({ ...emptyQuestion(), address: '192.0.2.1', user: ' ', groups: '\n' }),
    ).toEqual({ address: '192.0.2.1' }));
  it('names who has signed in, with groups one a line', () =>
    expect(
      questionOf({
        ...emptyQuestion(),
        address: '192.0.2.1',
        email: ' ann@example.com ',
        groups: 'ops\ncn=shop,dc=example',
      }),
    ).toEqual({
      address: '192.0.2.1',
      email: 'ann@example.com',
      groups: ['ops', 'cn=shop,dc=example'],
    }));
});
