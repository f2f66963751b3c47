import { describe, expect, it } from 'vitest';
import { Problem } from '../../shared/api/client';
import { explain } from './explain';

const problem = (code: string, message: string, field?: string) =>
  new Problem(400, { code, message, field });

describe('explain', () => {
  it.each([
    // Nothing is said twice.
    [
      problem('invalid_token', 'not an auth token: a part of it is missing or mistyped'),
      'This is not a valid token: a part of it is missing or mistyped',
    ],
    [
      problem('relay_rejected', 'the relay refused: shop.example is taken', 'domain'),
      'The relay refused: shop.example is taken',
    ],
    [
      problem('control_busy', 'another change is being made; try again in a moment'),
      'Another change is still being made. Try again in a moment.',
    ],
    [
      problem('not_configured', 'there is no auth token yet; configure one first'),
      'No token is configured yet.',
    ],
    // Whoever paused the daemon need not check the network.
    [
      problem(
        'relay_unreachable',
        'there is no session with the relay now; try again when it is connected',
      ),
      'There is no session with the relay now; try again when it is connected',
    ],
    [problem('not_found', 'there is no request with this id'), 'There is no request with this id'],
  ])('%s', (error, want) => expect(explain(error)).toBe(want));
});
