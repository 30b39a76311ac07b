import { once } from 'node:events';
import { get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Streams } from '../../src/transports/http/api/streams.js';
import type { HttpEnv } from '../../src/transports/http/route.js';

/** Answers that go on, over real connections. */

let server: Server;

afterEach(() => {
  server.closeAllConnections();
  server.close();
  vi.restoreAllMocks();
});

describe('a reader that takes nothing', () => {
  it('of a file is cut off, which no end of the file looks like, and nobody writes of it', async () => {
    const written = vi.spyOn(console, 'error');
    const troubles: unknown[] = [];
    let isClosed = false;
    const streams = new Streams();
    const app = new Hono<HttpEnv>().get('/', (c) =>
      streams.serve(c, {
        type: 'application/x-ndjson',
        source: {
          next: async () => `${'x'.repeat(1 << 20)}\n`,
          close: () => {
            isClosed = true;
          },
        },
        idle: null,
        farewell: null,
        look: async () => undefined,
        trouble: (_, error) => troubles.push(error),
      }),
    );
    server = createAdaptorServer({ fetch: app.fetch }) as Server;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    await vi.waitFor(() => expect(isClosed).toBe(true), { timeout: 60_000, interval: 100 });
    expect(streams.size).toBe(0);
    answer.resume();
    await expect(once(answer, 'end')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(troubles).toEqual([]);
    expect(written).not.toHaveBeenCalled();
  });
});
