/** Where the mocks listen. */
import type { Server } from 'node:http';

// Below the ports that systems give out by themselves: a mock that was stopped
// finds its own free when it is back, whatever else has connected meanwhile.
const first = 11_000;
const many = 1000;
let next = Math.floor(Math.random() * many);

/** Listens on loopback at a port, or at one of the mocks' own if it is 0, and returns it. */
export async function listen(server: Server, port: number): Promise<number> {
  for (let tries = 1; ; tries++) {
    const at = port || first + (next++ % many);
    try {
      await new Promise<void>((done, fail) => {
        server.once('error', fail);
        server.listen(at, '127.0.0.1', () => {
          server.off('error', fail);
          done();
        });
      });
      return at;
    } catch (error) {
      if (port || tries === many || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE')
        throw error;
    }
  }
}
