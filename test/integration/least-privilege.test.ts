import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import {
  headAfter,
  SAMPLE_TIME,
  sampleAdmission,
  sampleBatch,
  sampleEnded,
  sampleKey,
  sampleLease,
  sampleRun,
} from '../support/sample-records.js';

// The second role of the operations guide: what it is granted is enough for a coordinator, and too little to change the log.

const GUIDE = new URL('../../docs/operations.md', import.meta.url);
const role = `writ_app_${randomUUID().slice(0, 8)}`;
let database: TestDatabase;
let owner: pg.Client;
let appUrl: string;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  const { rows } = await owner.query<{ name: string }>('SELECT current_database() AS name');
  const sql = /```sql\n(GRANT USAGE ON SCHEMA writ[\s\S]*?)```/.exec(readFileSync(GUIDE, 'utf8'))?.[1] ?? '';
  await owner.query(`CREATE ROLE ${role} LOGIN PASSWORD 'for-a-test'`);
  await owner.query(sql.replaceAll('writ_app', role).replaceAll('IN DATABASE writ', `IN DATABASE ${rows[0]?.name}`));
  const url = new URL(database.url);
  url.username = role;
  url.password = 'for-a-test';
  appUrl = url.href;
});
afterAll(async () => {
  await owner?.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  await owner?.end();
  await database?.drop();
});

it('does all that a coordinator does', async () => {
  const store = createPostgresStore({ url: appUrl, prepared: PREPARED });
  try {
    const namespace = `ns-${randomUUID()}`;
    const run = sampleRun();
    const lease = sampleLease({ runId: run.runId });
    const records = { runs: [run], leases: [lease], keys: [sampleKey()], admissions: [sampleAdmission()] };
    const first = sampleBatch(namespace, null, records);
    expect((await store.append(first)).outcome).toBe('appended');
    const { identity } = await store.readGate(namespace);
    const ended = {
      identity,
      runs: [{ ...run, state: 'finished', endedAt: SAMPLE_TIME } as const],
      leases: [sampleEnded(lease)],
      admissions: [sampleAdmission({ inDoubtSince: SAMPLE_TIME })],
    };
    const second = sampleBatch(namespace, headAfter(first.events), ended);
    expect((await store.append(second)).outcome).toBe('appended');
    expect(await store.loadSnapshot(namespace)).not.toBeNull();
    await store.heartbeat('replica');
    await store.heartbeat('replica');
    expect(await store.purge(namespace, SAMPLE_TIME + SECOND, 10)).toBe(1);
    await store.eraseTextsBefore(namespace, SAMPLE_TIME + SECOND, 10);
    await store.keepCheckpoint({
      ...{ namespace, revision: 1, hash: 'a'.repeat(64), time: SAMPLE_TIME, signature: Buffer.alloc(64) },
      ...{ keyId: 'key', publicKeyPem: 'pem', sentTo: 'log' },
    });
    expect(await store.listCheckpoints(namespace, null, 10)).toHaveLength(1);
    await store.changeSigningKeys((keys) => keys);
    await store.claimTailers('replica', [namespace], SECOND);
    await store.yieldTailers('replica');
  } finally {
    await store.close();
  }
});

it('cuts the log by the record of a cut, and not by itself (A2)', async () => {
  const app = new pg.Client({ connectionString: appUrl });
  await app.connect();
  try {
    const namespace = `ns-${randomUUID()}`;
    const insert = `INSERT INTO writ.event (namespace, revision, time_us, batch_id, kind, body_version, actor, run_id,
      lease_id, resources, request_ids, body, prev_hash, hash) SELECT $1, n, 1, gen_random_uuid(),
      CASE n WHEN 5 THEN 'database_identified' ELSE 'acquire_refused' END, 1,
      'x', '', '', '{}', '{}', '{}', sha256('a'), sha256('b') FROM generate_series(1, 9) AS n`;
    await app.query(insert, [namespace]);
    await app.query(`SET writ.archiving = 'on'`);
    await expect(app.query('DELETE FROM writ.event')).rejects.toThrow('permission denied');
    const { rows } = await app.query<{ cut: string }>('SELECT writ.cut_log($1, 100) AS cut', [namespace]);
    expect(rows).toEqual([{ cut: '0' }]);
    const store = createPostgresStore({ url: appUrl, prepared: PREPARED });
    expect(await store.cutLog(namespace, 10).finally(() => store.close())).toBe(0);
  } finally {
    await app.end();
  }
});

it('changes nothing that has happened', async () => {
  const { rows } = await owner.query<{ relname: string }>(
    `SELECT relname FROM pg_class WHERE relnamespace = 'writ'::regnamespace AND relkind IN ('r', 'p')
     AND NOT has_table_privilege($1, oid, 'UPDATE') AND NOT has_table_privilege($1, oid, 'DELETE') ORDER BY relname`,
    [role],
  );
  expect(rows.map(({ relname }) => relname)).toEqual(['event', 'event_request', 'map_version', 'schema_migration']);
});
