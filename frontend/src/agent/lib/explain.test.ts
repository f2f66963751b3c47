import { describe, expect, it } from 'vitest';
import { Problem } from '../../shared/api/client';
import { explain, refusalOf } from './explain';
import { PortError } from './portrange';

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
    [
      problem('relay_unreachable', 'adit is paused; resume it first'),
      'adit is paused; resume it first',
    ],
    [problem('not_found', 'there is no request with this id'), 'There is no request with this id'],
  ])('%s', (error, want) => expect(explain(error)).toBe(want));

  it('says at which port a range was refused, and what of it stays', () => {
    const taken = problem(
      'relay_rejected',
      'the relay refused: port 20016 is taken',
      'remote_port',
    );
    expect(explain(new PortError(27_016, taken, []))).toBe(
      'None of the ports is published. Port 27016: The relay refused: port 20016 is taken',
    );
    expect(explain(new PortError(27_016, taken, ['game-27015']))).toContain('game-27015');
  });
});

describe('refusalOf', () => {
  const taken = problem('relay_rejected', 'remote_port: port 20016 is taken', 'remote_port');

  it('says at the field what is wrong with it', () =>
    expect(refusalOf(taken, () => true)).toEqual({
      field: 'remote_port',
      text: 'Port 20016 is taken',
    }));

  it('names the port of a range there', () =>
    expect(refusalOf(new PortError(27_016, taken, []), () => true)).toEqual({
      field: 'remote_port',
      text: 'None of the ports is published. Port 27016: port 20016 is taken',
    }));

  it('says at the top what the form has no field for', () =>
    expect(refusalOf(taken, () => false).field).toBe(''));
});
