import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES } from '../../src/auth/principal.js';
import { hashToken } from '../../src/auth/tokens.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { parseRouteTable } from '../../src/route-table/index.js';
import { readContract } from '../../src/transports/grpc/contract.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { as, createRun, granted, putMap, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { damaged, randomMessage, seeded } from '../support/wire-bytes.js';

/** The whole coordinator, from the socket to Postgres, asked what nobody would ask. */

const MAP = `
version: 1
unmatched: observe
kinds:
  - { pattern: "release/{env}", mode: enforce, actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
tasks:
  promote: { params: [env], entries: [ { resource: "release/{env}", access: write, actions: [promote] } ] }
`;

const ROUNDS = 40;
/** Acquires may wait; nobody waits longer than this for them. */
const DEADLINE_MS = 5000;
/** Answered with any number of messages. */
const STREAMS = new Set([
  '/writ.v1.AuditService/ExportEvents',
  '/writ.v1.FenceService/StreamFenceChecks',
  '/writ.v1.FenceService/WatchFences',
  '/writ.v1.LeaseService/Session',
]);
/** What a caller can be blamed for, or is told in the ordinary course of things. */
const ORDINARY = ['OK', 'INVALID_ARGUMENT', 'NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION', 'ABORTED'];

let database: TestDatabase;
let replica: TestReplica;
let server: GrpcServer;
let client: Client;
const errors: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const table = parseRouteTable({ version: 1, routes: [{ method: 'GET', path: '/{all...}', reads: true }] });
  replica = await startReplica({ url: database.url, routes: { of: () => ({ namespace: 'default', table }) } });
  await putMap(replica.api, MAP);
  const log = createLogger('error', { write: (line) => void errors.push(line) });
  server = new GrpcServer({ limits: readConfig({}).limits, metrics: createMetrics(), log });
  const address = await server.listen('127.0.0.1', 0);
  const authenticator = createCallerAuthenticator({
    principals: [{ name: 'runner', roles: ROLES, tokenSha256: hashToken('token') }],
  });
  server.serve({ api: replica.api, authenticator, blockerKey: Buffer.from('key') });
  client = new Client(address, credentials.createInsecure());
});

afterAll(async () => {
  client?.close();
  await server?.drain(0);
  await replica?.stop();
  await database?.drop();
});

/** The code of the answer. A replica that the machine gave no time for a while says so, and is asked again. */
async function answerTo(path: string, message: Buffer): Promise<string> {
  for (;;) {
    const error = await send(path, message);
    if (error?.code === status.UNAVAILABLE && error.details.includes('heartbeat')) continue;
    return error === null ? 'OK' : (status[error.code] ?? '');
  }
}

function send(path: string, message: Buffer): Promise<ServiceError | null> {
  const metadata = new Metadata();
  metadata.set('authorization', 'Bearer token');
  const identity = (bytes: Buffer): Buffer => bytes;
  const options = { deadline: Date.now() + DEADLINE_MS };
  return new Promise((resolve) => {
    const done = (error: ServiceError | null): void => resolve(error);
    if (STREAMS.has(path)) {
      const stream = client.makeServerStreamRequest(path, identity, identity, message, metadata, options);
      stream
        .on('data', () => undefined)
        .on('end', () => done(null))
        .on('error', done);
    } else client.makeUnaryRequest(path, identity, identity, message, metadata, options, done);
  });
}

describe('the coordinator', () => {
  it('answers whatever it is asked, blames nobody but the caller, and goes on', async () => {
    const runId = await createRun(replica.api);
    // Of its own, should this be the second attempt.
    const resource = `release/${runId}`;
    errors.length = 0;
    const { leaseId } = await granted(replica.api, runId, [write(resource, 'promote')]);
    const words = [runId, leaseId, resource, 'promote', 'default', MAP, 'key-1', '{all...}'];
    const random = seeded(20261129);
    const seen = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round += 1) {
      const calls = [...readContract().requests].map(async ([path, request]) => {
        const whole = randomMessage(request, random, words);
        const code = await answerTo(path, round % 4 === 0 ? damaged(whole, random) : whole);
        expect([...ORDINARY, 'DEADLINE_EXCEEDED'], path).toContain(code);
        seen.set(code, (seen.get(code) ?? 0) + 1);
      });
      await Promise.all(calls);
    }
    // It got through to the services, and they still work.
    expect(seen.get('OK')).toBeGreaterThan(ROUNDS);
    expect(errors).toEqual([]);
    expect((await replica.api.getNamespace(as('admin'), { name: 'default' })).name).toBe('default');
  });
});
