import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES, type Role } from '../../src/auth/principal.js';
import { hashToken } from '../../src/auth/tokens.js';
import { type ConnectOptions, connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { WritApi } from '../../src/services/api.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { startReplica } from './coordinator.js';
import { createTestDatabase, type TestDatabase } from './postgres.js';

/** A coordinator in this process that is asked over gRPC, with a principal for every role, and that can be gone for a while. */
export interface ServedReplica {
  readonly api: WritApi;
  readonly endpoint: string;
  /** Its key set, as it is published. */
  keys(): Promise<{ keys: object[] }>;
  /** As the principal with this role, whose name is the role's. Closed with the replica. */
  client(role: Role, more?: Partial<ConnectOptions>): WritClient;
  /** Nobody answers any more: whoever connects is reset. Clients find that out by themselves. */
  down(): Promise<void>;
  /** Listens again, where it did; with a bound on each principal's calls, if given. */
  up(maxCallsPerSecond?: number): Promise<void>;
  stop(): Promise<void>;
}

/** On a database of its own, or on one that others share. */
export async function startServedReplica(shared?: TestDatabase): Promise<ServedReplica> {
  const database = shared ?? (await createTestDatabase());
  const replica = await startReplica({ url: database.url });
  const authenticator = createCallerAuthenticator({
    principals: ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(`token-${role}`) })),
  });
  const clients: WritClient[] = [];
  let port = 0;
  let server: GrpcServer | null = null;
  let placeholder: Server | null = null;
  const free = async () => {
    if (placeholder === null) return;
    const closed = once(placeholder, 'close');
    placeholder.close();
    placeholder = null;
    await closed;
  };
  const up = async (maxCallsPerSecond?: number) => {
    await free();
    const { limits } = readConfig({});
    const bounded = maxCallsPerSecond === undefined ? limits : { ...limits, maxCallsPerSecond };
    server = new GrpcServer({ limits: bounded, metrics: createMetrics(), log: createLogger('silent') });
    const address = await server.listen('127.0.0.1', port);
    port = Number(address.split(':').at(-1));
    server.serve({ api: replica.api, authenticator, blockerKey: Buffer.from('key') });
  };
  const down = async () => {
    if (server === null) return;
    await server.drain(0);
    server = null;
    // Other test files listen on whatever port is free, and would be asked in its place.
    placeholder = createServer((socket) => socket.on('error', () => undefined).resetAndDestroy());
    placeholder.listen(port, '127.0.0.1');
    await once(placeholder, 'listening');
  };
  await up();
  const endpoint = `127.0.0.1:${port}`;
  return {
    api: replica.api,
    endpoint,
    keys: async () => JSON.parse((await replica.api.getKeys()).jwks) as { keys: object[] },
    client(role, more = {}) {
      const client = connectWrit({ endpoint, token: `token-${role}`, ...more });
      clients.push(client);
      return client;
    },
    down,
    up,
    async stop() {
      for (const client of clients) client.close();
      await server?.drain(0);
      await free();
      await replica.stop();
      if (shared === undefined) await database.drop();
    },
  };
}
