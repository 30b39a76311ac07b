import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below every default ephemeral range: a client that redials a dead server there would one day connect to itself
 *  (same source and destination port) and keep the server from binding its port again. */
const PORT_RANGE = [15_000, 32_768] as const;

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = randomInt(PORT_RANGE[0], PORT_RANGE[1]);
    const server = createServer();
    server.listen({ port, host: '127.0.0.1', exclusive: true });
    try {
      await once(server, 'listening');
      return port;
    } catch {
      // Taken: another one.
    } finally {
      server.close();
    }
  }
  throw new Error(`no free port between ${PORT_RANGE[0]} and ${PORT_RANGE[1]}`);
}
