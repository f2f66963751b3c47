import { describe, expect, it } from 'vitest';
import type { TunnelCreate } from '../api/types';
import { eachPort, portsFault } from './portrange';

const game: TunnelCreate = { type: 'udp', local_ip: '127.0.0.1', local_port: 27_015 };

describe('portsFault', () => {
  it.each<[string, string[], string | undefined]>([
    ['', ['27015', ''], undefined],
    ['1', ['65535', ''], undefined],
    ['2', ['65535', ''], 'form.ports.end'],
    ['256', ['65280', '65280'], undefined],
    ['256', ['22', '65281'], 'form.ports.end'],
    ['0', ['22', ''], 'form.ports.invalid'],
    ['257', ['22', ''], 'form.ports.invalid'],
    ['six', ['22', ''], 'form.ports.invalid'],
    // What is wrong with a port is said there.
    ['2', ['', '70000'], undefined],
  ])('%s from %j on', (text, firsts, want) => {
    expect(portsFault(text, firsts)).toBe(want);
  });
});

describe('eachPort', () => {
  it('leaves one port as it is', () => {
    expect(eachPort({ ...game, name: 'game' }, 1)).toEqual([{ ...game, name: 'game' }]);
  });

  it('counts both ports, and names each', () => {
    expect(eachPort({ ...game, remote_port: 20_015, name: 'game' }, 2)).toEqual([
      { ...game, local_port: 27_015, remote_port: 20_015, name: 'game-27015' },
      { ...game, local_port: 27_016, remote_port: 20_016, name: 'game-27016' },
    ]);
  });

  it('leaves public ports and names to the relay and the daemon', () => {
    expect(eachPort(game, 3).map((t) => [t.local_port, t.remote_port, t.name])).toEqual([
      [27_015, undefined, undefined],
      [27_016, undefined, undefined],
      [27_017, undefined, undefined],
    ]);
  });
});
