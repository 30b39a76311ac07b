import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Context } from 'hono';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  createGate,
  type Gate,
  postgresGuard,
  postgresIdempotency,
  postgresOverrideJournal,
  writeRecords,
} from '../../src/clients/target/index.js';
import { as, createRun, freshKey, granted, putMap, write } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { releaseRoutes } from '../support/release-routes.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';
import { served } from '../support/target-servers.js';

// The route of the guide, with a real coordinator: gate, key, guard, condition and record work together.

const ROUTES_FILE = fileURLToPath(new URL('../support/release-routes.ts', import.meta.url));
const GUIDE = new URL('../../docs/target-writes.md', import.meta.url);
const DAY = 86_400_000;

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;
const ROUTES = {
  version: 1,
  routes: [
    {
      method: 'PUT',
      path: '/releases/{env}',
      writes: [{ resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer', resolver: 'kim' }],
    },
  ],
};

let replica: ServedReplica;
let database: TestDatabase;
let pool: pg.Pool;
let gate: Gate;
const guard = postgresGuard();
const records = writeRecords();

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  await guard.install(pool);
  await records.install(pool);
  await keys().install();
  await pool.query('CREATE TABLE release (env text PRIMARY KEY, image text NOT NULL, version bigint NOT NULL)');
  gate = createGate({ client: replica.client('target'), routes: ROUTES, guard });
});
afterAll(async () => {
  await gate?.close();
  await pool?.end();
  await database?.drop();
  await replica?.stop();
});
beforeEach(async () => {
  await pool.query(`TRUNCATE release, writ_records.write_record, writ_keys.request_key, writ_guard.mark;
                             INSERT INTO release VALUES ('prod-eu', 'shop:7', 7)`);
  // What an earlier attempt holds would be in the way of the next.
  const everybody = { principal: '', resource: '', all: true, reason: 'a test', idempotencyKey: freshKey() };
  await replica.api.stopRuns(as('operator'), everybody);
});

const keys = () => postgresIdempotency(pool, { retentionMs: DAY, inDoubtMs: DAY, effects: 'in_transaction' });

/** A run that holds the release, and its requests. */
async function holder(url: string) {
  const runId = await createRun(replica.api);
  const lease = await granted(replica.api, runId, [write('release/prod-eu', 'promote')]);
  const token = lease.entries[0]?.token ?? 0;
  const promote = async (key: string, observed: number, image: string) => {
    const answer = await fetch(`${url}/releases/prod-eu`, {
      method: 'PUT',
      headers: {
        'content-type': 'application/json',
        'writ-lease': lease.leaseId,
        'writ-fencing-token': String(token),
        'if-match': `"${observed}"`,
        'idempotency-key': key,
        'x-request-id': `req-${key}`,
      },
      body: JSON.stringify({ image }),
    });
    const body = (await answer.json()) as Record<string, unknown>;
    return { status: answer.status, replayed: answer.headers.get('idempotency-replayed'), body };
  };
  const release = () => replica.api.releaseLease(as('runner'), { runId, leaseId: lease.leaseId, acquireKey: null });
  return { runId, token, promote, release };
}

/** As by a session; the gate and the handler know the person by it. */
const callerOf = (c: Context) => /^Session (.+)$/.exec(c.req.header('authorization') ?? '')?.[1];

const byHand = (url: string, env: string, who: string | undefined, key: string) =>
  fetch(`${url}/releases/${env}`, {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      'if-match': '"7"',
      'idempotency-key': key,
      'x-request-id': `req-${key}`,
      ...(who === undefined ? {} : { authorization: `Session ${who}` }),
    },
    body: JSON.stringify({ image: 'shop:8' }),
  });

/** To be waited for: records are shown once no older transaction is open, and other tests' share the server (F21). */
const recorded = async () =>
  (await records.list(pool)).map(({ requestId, result, observedVersion, newVersion }) => [
    requestId,
    result,
    observedVersion,
    newVersion,
  ]);

it('a protected write: one answer per key, one winner per version, none for an old holder, all on record', async () => {
  const url = await served(releaseRoutes({ pool, gate, guard, keys: keys(), records, callerOf }));
  const a = await holder(url);
  await guard.open(pool, { resource: 'release/prod-eu', token: BigInt(a.token), runId: a.runId });
  expect(await a.promote('k1', 7, 'shop:8')).toEqual({ status: 200, replayed: null, body: { version: '8' } });
  expect(await a.promote('k1', 7, 'shop:8')).toEqual({ status: 200, replayed: 'true', body: { version: '8' } });
  expect(await a.promote('k2', 7, 'shop:9')).toMatchObject({
    status: 412,
    body: { code: 'version_conflict', current_version: '8', resolver: 'kim', conflict_category: 'shared_pointer' },
  });

  // A newer holder has opened it, after A's check and before A's transaction: the guard says so, not the coordinator.
  await guard.open(pool, { resource: 'release/prod-eu', token: BigInt(a.token) + 1n });
  expect(await a.promote('k3', 8, 'shop:10')).toMatchObject({ status: 409, body: { code: 'stale_token' } });
  // And once the lease is over, the coordinator does.
  await a.release();
  expect(await a.promote('k4', 8, 'shop:10')).toMatchObject({ status: 409, body: { code: 'released' } });

  expect((await pool.query('SELECT image, version FROM release')).rows).toEqual([{ image: 'shop:8', version: '8' }]);
  await expect.poll(recorded).toEqual([
    ['req-k1', 'written', '7', '8'],
    ['req-k2', 'version_conflict', '7', undefined],
    ['req-k3', 'stale_token', '8', undefined],
  ]);
});

it('a write that no run makes has its key, and its record, under whoever does: by an override, and in observe mode', async () => {
  const journal = postgresOverrideJournal(pool);
  await journal.install();
  const emergency = createGate({ client: replica.client('target'), routes: ROUTES, guard, overrides: { journal } });
  try {
    const kit = { pool, gate: emergency, guard, keys: keys(), records, callerOf };
    const url = await served(releaseRoutes(kit));
    const until = new Date(Date.now() + 3_600_000);
    await emergency.override({ who: 'alice', why: 'prod is broken', until, patterns: ['release/prod-eu'] });
    expect((await byHand(url, 'prod-eu', 'alice', 'k1')).status).toBe(200);
    expect((await byHand(url, 'prod-eu', 'alice', 'k1')).headers.get('idempotency-replayed')).toBe('true');

    await putMap(replica.api, MAP.replace('owner_service', 'mode: observe, owner_service'), 1);
    await pool.query(`UPDATE release SET version = 7`);
    expect((await byHand(url, 'prod-eu', 'bob', 'k1')).status).toBe(200);
    await pool.query(`UPDATE release SET version = 7`);
    expect((await byHand(url, 'prod-eu', undefined, 'k2')).status).toBe(401);
    const identities = async () => (await records.list(pool)).map(({ identity, result }) => `${identity} ${result}`);
    await expect.poll(identities).toEqual(['alice written', 'bob written', 'nobody unauthenticated']);
  } finally {
    await emergency.close();
  }
});

it('the guide shows this route, line by line', () => {
  const code = readFileSync(ROUTES_FILE, 'utf8').replace("'../../src/clients/target/index.js'", "'writ/target'");
  expect(readFileSync(GUIDE, 'utf8')).toContain(`\`\`\`ts\n${code}\`\`\`\n`);
});
