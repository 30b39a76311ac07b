import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy before a real Postgres. */
export interface DyingPostgres {
  readonly url: string;
  /** How many connections it has told that the server is going. */
  readonly told: () => number;
  close(): Promise<void>;
}

/** ReadyForQuery, idle. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/**
 * Every connection's nth ReadyForQuery leaves in one packet with the FATAL of a server whose postmaster was killed, as
 * happens when the answer and the end of the backend fall together; the connection ends with it.
 */
export async function dyingPostgres(url: string, readyAnswers: number): Promise<DyingPostgres> {
  const server = new URL(url);
  const open = new Set<Socket>();
  let told = 0;
  const listener = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname);
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    let left = readyAnswers;
    client.on('data', (data) => upstream.write(data));
    upstream.on('data', (data) => {
      const isReady = data.subarray(-READY.length).equals(READY);
      if (isReady) left -= 1;
      if (!isReady || left > 0) return client.write(data);
      told += 1;
      return client.end(Buffer.concat([data, fatal()]));
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return {
    url: through.href,
    told: () => told,
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** ErrorResponse: https://www.postgresql.org/docs/current/protocol-message-formats.html */
function fatal(): Buffer {
  const fields = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0';
  const message = Buffer.alloc(5 + fields.length, fields);
  message.write('E', 0);
  message.writeInt32BE(4 + fields.length, 1);
  message.write(fields, 5);
  return message;
}
