import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { repeated } from '../bench.mjs';
import { startRedis } from '../peers/redis.mjs';
import { find } from '../peers/server.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const IN_FLIGHT = 16;
const DOCUMENTS = 1_000;

/**
 * What a guard costs: one document changed under its version, in a transaction (Postgres) or a script (Redis), with the
 * guard and without. Every token is current; resources have three segments, so three paths are looked at.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function guards(bench) {
  const coordinator = await bench.launcher.lend('guards');
  const kit = await import(pathToFileURL(join(bench.launcher.options.dist, 'clients', 'target', 'index.js')).href);
  const rows = [
    ...(await inPostgres(bench, coordinator, kit.postgresGuard('bench_guard'))),
    ...(await inRedis(bench, coordinator, kit)),
  ];
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/** @param {number} document @param {boolean} exclusive */
const writeOf = (document, exclusive) => ({
  resource: `bench/document/${document}`,
  action: 'change',
  token: BigInt(Date.now()) * 1_000n,
  exclusive,
  runId: 'run:bench',
});

/** The documents one after another: no two workers want the same at a time. */
function documents() {
  let next = 0;
  return () => next++ % DOCUMENTS;
}

/** @param {Bench} bench @param {import('../coordinator.mjs').Coordinator} coordinator @param {any} guard @returns {Promise<Row[]>} */
async function inPostgres(bench, coordinator, guard) {
  const pool = new pg.Pool({ connectionString: (await coordinator.database()).url, max: IN_FLIGHT });
  pool.on('error', () => undefined);
  bench.launcher.resources.add(() => pool.end());
  await guard.install(pool);
  await pool.query(`
CREATE SCHEMA IF NOT EXISTS bench_target;
CREATE TABLE IF NOT EXISTS bench_target.document (id int PRIMARY KEY, version bigint NOT NULL) WITH (fillfactor = 70);
INSERT INTO bench_target.document SELECT n, 1 FROM generate_series(0, ${DOCUMENTS - 1}) AS n ON CONFLICT DO NOTHING`);
  const nextDocument = documents();
  const operation = (/** @type {boolean | null} */ exclusive) => async () => {
    const document = nextDocument();
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      if (exclusive !== null) await guard.admit(client, writeOf(document, exclusive));
      await client.query('UPDATE bench_target.document SET version = version + 1 WHERE id = $1', [document]);
      await client.query('COMMIT');
    } finally {
      client.release();
    }
  };
  return compared(bench, coordinator, 'a write in Postgres', operation);
}

/** @param {Bench} bench @param {import('../coordinator.mjs').Coordinator} coordinator @param {any} kit @returns {Promise<Row[]>} */
async function inRedis(bench, coordinator, kit) {
  if (find('redis-server') === null) {
    bench.progress('guards in Redis: not measured, no redis-server');
    return [];
  }
  const redis = await startRedis(bench.launcher.resources);
  const guard = kit.redisGuard();
  await guard.install(redis);
  const nextDocument = documents();
  const script = `return redis.call('HINCRBY', KEYS[1], 'version', 1)`;
  const operation = (/** @type {boolean | null} */ exclusive) => async () => {
    const document = nextDocument();
    const keys = [`document:${document}`];
    // Without writes there is nothing to compare: the same way to Redis, and no mark.
    await guard.write(redis, exclusive === null ? [] : [writeOf(document, exclusive)], { script, keys });
  };
  return compared(bench, coordinator, 'a write in Redis', operation);
}

/**
 * Without the guard first; the others are shown as a part of that.
 * @param {Bench} bench @param {import('../coordinator.mjs').Coordinator} coordinator @param {string} what
 * @param {(exclusive: boolean | null) => () => Promise<void>} operation @returns {Promise<Row[]>}
 */
async function compared(bench, coordinator, what, operation) {
  /** @type {Row[]} */
  const rows = [];
  for (const [how, exclusive] of /** @type {const} */ ([
    ['', null],
    [', guarded, optimistic', false],
    [', guarded, leased', true],
  ])) {
    bench.progress(`${what}${how}, ${IN_FLIGHT} in flight`);
    const measured = await repeated(bench, coordinator, IN_FLIGHT, operation(exclusive));
    const unguarded = rows[0]?.value;
    rows.push({
      name: `${what}${how}, ${IN_FLIGHT} in flight`,
      value: measured.perSecond,
      unit: 'writes/s',
      p50: measured.p50,
      p99: measured.p99,
      spread: measured.spread,
      ratio: unguarded === undefined ? null : measured.perSecond / unguarded,
    });
  }
  return rows;
}
