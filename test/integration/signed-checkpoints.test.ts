import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isSigned } from '../../src/services/checkpoint-signature.js';
import { as, createRun, startReplica, type TestReplica } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

// What was signed on schedule, and where it went, can be listed (A2).

const PAGE = { size: 100, token: '' };

let database: TestDatabase;
const replicas: TestReplica[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await database?.drop();
});

test('every replica tells of the checkpoints of all, newest first, each signed over an event of the log', async () => {
  for (let count = 0; count < 2; count += 1)
    replicas.push(await startReplica({ url: database.url, env: { WRIT_CHECKPOINT_EVERY: '1s' } }));
  const [a, b] = replicas as [TestReplica, TestReplica];
  await createRun(a.api);
  const list = async () => (await b.api.listCheckpoints(as('auditor'), { page: PAGE })).items;
  await expect.poll(async () => (await list()).length, { timeout: 20_000 }).toBeGreaterThan(1);
  const listed = await list();
  expect(listed.map(({ number }) => number)).toEqual(listed.map(({ number }) => number).sort((x, y) => y - x));
  for (const { sentTo, ...checkpoint } of listed) {
    expect(isSigned(checkpoint)).toBe(true);
    expect(sentTo).toMatch(/^log of .+, process \d+$/);
    const event = await b.store.readEvent('default', checkpoint.revision);
    expect(event?.hash).toBe(checkpoint.hash);
  }
  const [newest] = (await b.api.listCheckpoints(as('auditor'), { page: { size: 1, token: '' } })).items;
  expect(newest?.number).toBeGreaterThanOrEqual(listed[0]?.number ?? 0);
});

test('the list does not grow for ever: the last 10,000 of a namespace stay', async () => {
  const { store } = replicas[0] as TestReplica;
  const namespace = 'crowded';
  const owner = new pg.Client({ connectionString: database.url });
  await owner.connect();
  try {
    await owner.query(
      `INSERT INTO writ.signed_checkpoint (namespace, revision, hash, time_us, signature, key_id, public_key, sent_to)
       SELECT $1, n, sha256('a'), n, decode(repeat('00', 64), 'hex'), 'key', 'pem', 'log' FROM generate_series(1, 10050) AS n`,
      [namespace],
    );
    const checkpoint = { namespace, revision: 10_051, hash: 'a'.repeat(64), time: 10_051, signature: Buffer.alloc(64) };
    await store.keepCheckpoint({ ...checkpoint, keyId: 'key', publicKeyPem: 'pem', sentTo: 'log' });
    const counted =
      'SELECT min(revision) AS first, max(revision) AS last FROM writ.signed_checkpoint WHERE namespace = $1';
    expect((await owner.query(counted, [namespace])).rows).toEqual([{ first: '51', last: '10051' }]);
  } finally {
    await owner.end();
  }
});
