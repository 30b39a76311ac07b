import { execFileSync } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { sql } from '../../support/older-database.js';
import { startPrivatePostgres } from '../../support/postgres.js';
import { redisMissing, startRedis } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { pgbouncerMissing, startPgbouncer } from '../pgbouncer.js';
import type { Recorder } from '../recorder.js';
import type { Stage } from '../stage.js';
import { Workload } from '../workload.js';
import { World } from '../world.js';
import { checkOf, hold, newRun, setEntry } from './common.js';
import { nothingMissing, type Scenario } from './scenario.js';
import { runTests } from './tests.js';

/** Every Redis message and every notification of Postgres is lost: waiters still get on, within the poll interval. */
export const f9: Scenario = {
  id: 'F9',
  title: 'every Redis message and every notification is lost',
  missing: () => [redisMissing, pgbouncerMissing].filter((why) => why !== '').join('; '),
  async run({ stage, random, full }) {
    const redis = await startRedis();
    stage.add('Redis', () => redis.stop());
    const proxy = await TcpProxy.start(`127.0.0.1:${redis.port}`);
    stage.add('proxy of Redis', () => proxy.stop());
    const world = await World.open(stage, 'F9', {
      // Behind a pooler in transaction mode nobody hears a notification.
      before: (url) => startPgbouncer(stage, url),
      env: {
        WRIT_REDIS_URL: `redis://${proxy.endpoint}`,
        WRIT_DATABASE_PREPARED: 'off',
        // A checkpoint reads the log too, and would hide that nobody polls.
        WRIT_CHECKPOINT_EVERY: '1h',
      },
    });
    const [a, b] = [world.cluster.replica(0), world.cluster.replica(1)];
    const caller = world.caller('runner', 15_000);
    const waits: number[] = [];
    for (let round = 0; round < (full ? 60 : 12); round += 1) {
      // Lost on the way from Redis, then to it, then nobody is there at all.
      if (round % 3 === 0) proxy.cut();
      proxy.refusing = round % 3 === 2;
      if (round % 3 !== 2) proxy.lose(round % 3 === 0 ? 'down' : 'up');
      const entries = [setEntry(`item/${round}`)];
      const held = await hold(caller, a, entries, { ttlMs: 10_000 });
      const waiting = hold(caller, b, entries, { waitMs: 10_000 });
      await pause(random.between(300, 800));
      await caller.release(a, held.runId, held.lease);
      const releasedAt = performance.now();
      const { lease, runId } = await waiting;
      waits.push(performance.now() - releasedAt);
      const reason = await checkOf(caller, a, lease);
      world.expect(reason === 'ok', `the one who waited is ${reason} at the other replica`);
      // What ends by time is written down by whoever sees it, and would bring the other up to date in the next round.
      await caller.release(b, runId, lease);
    }
    const most = Math.max(...waits);
    // Without a poll they would be found every 5 s, when places in the queue are kept.
    world.expect(most < 3_000, `somebody waited ${Math.round(most)} ms after the release`);
    return { ...(await world.judge()), notes: [`granted ${Math.round(most)} ms after the release at most`] };
  },
};

/** The whole integration suite behind a PgBouncer in transaction mode, nothing prepared. */
export const f11: Scenario = {
  id: 'F11',
  title: 'the integration suite behind PgBouncer in transaction mode',
  missing: () => pgbouncerMissing,
  async run(setting) {
    const postgres = await startPrivatePostgres({ settings: { max_connections: '300' } });
    setting.stage.add('Postgres', () => postgres.stop());
    const url = await startPgbouncer(setting.stage, postgres.url);
    const env = { WRIT_TEST_DATABASE_URL: url, WRIT_TEST_POOLER_URL: url, WRIT_TEST_PREPARED: 'off' };
    // Of the store's own tests those that are about a pooler: the others are about statements that are prepared.
    const store = 'test/integration/postgres-store.test.ts';
    const all = await runTests(setting, 'F11', ['test/integration', '--exclude', store], '', env);
    const own = await runTests(setting, 'F11', [store], 'behind a pooler', env);
    const violations = [...all.violations, ...own.violations];
    return { ...all, tests: (all.tests ?? 0) + (own.tests ?? 0), violations };
  },
};

const DISK_MB = 200;

/** A small disk of the server's own; how to end it comes with the stage. */
async function smallDisk(stage: Stage): Promise<string | null> {
  const directory = await stage.directory('disk');
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', directory], { stdio: 'ignore' });
  } catch {
    return null;
  }
  stage.add('small disk', async () => execFileSync('umount', [directory]));
  return directory;
}

/** The database's disk fills up, then it is read-only: refused with a clear reason, ready again by itself. */
export const f24: Scenario = {
  id: 'F24',
  title: "the database's disk is full, or it is read-only",
  missing: nothingMissing,
  async run({ stage, random }) {
    const disk = await smallDisk(stage);
    const settings = { max_wal_size: '48MB', min_wal_size: '32MB', shared_buffers: '16MB' };
    const world = await World.open(stage, 'F24', { settings, ...(disk === null ? {} : { postgresIn: disk }) });
    const { cluster, recorder } = world;
    const a = cluster.replica(0);
    const caller = world.caller('runner');
    const notes: string[] = [];
    const kept = await hold(caller, a, [setEntry('item/kept')], { ttlMs: 10_000 });
    /** Writes until nothing is written any more; the reasons. */
    const refusals = async () => {
      const reasons: string[] = [];
      const filler = world.caller('filler');
      for (let tries = 0; tries < 5_000 && reasons.length < 5; tries += 1) {
        if ((await filler.createRun(cluster.replica(tries))) !== null) reasons.length = 0;
        else reasons.push(faultOf(recorder, 'filler'));
      }
      return reasons;
    };
    const unready = async () => {
      const seen = await world.until(
        () => readiness(a.process.http),
        ({ status }) => status !== 200,
      );
      world.expect(seen.status === 503, `readiness says ${seen.status} while nothing can be written`);
      return seen.text;
    };
    if (disk === null) notes.push('no small disk could be mounted here: only read-only was tried');
    else {
      const ballast = join(disk, 'ballast');
      const workload = Workload.start(world, random.fork('workload'), { restMs: 5 });
      await fill(ballast);
      const reasons = await refusals();
      await workload.stop();
      notes.push(`a full disk was refused as ${reasons.join(', ')}`);
      world.expect(
        reasons.length > 0 && reasons.every((reason) => /^(DATABASE_|UNKNOWN_OUTCOME)/.test(reason)),
        `a full disk was refused as ${reasons.join(', ') || 'nothing'}`,
      );
      notes.push(`readiness said ${await unready()}`);
      await rm(ballast);
      // A server that could not even write its log has ended, as it must; whoever runs it starts it again.
      if (!(await isUp(world))) await cluster.postgres.restart();
      await cluster.heal();
    }
    await sql(cluster.postgres.url, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
    const reasons = await refusals();
    world.expect(
      reasons.every((reason) => reason === 'DATABASE_READ_ONLY') && reasons.length > 0,
      `read-only was refused as ${reasons.join(', ') || 'nothing'}`,
    );
    await unready();
    await sql(
      cluster.postgres.url,
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    );
    await cluster.heal();
    await hold(caller, a, [setEntry('item/after')]);
    await caller.release(a, kept.runId, kept.lease);
    return { ...(await world.judge()), notes };
  },
};

function faultOf({ calls }: Recorder, by: string): string {
  const fault = calls.findLast((call) => call.by === by)?.fault;
  return fault?.reason || fault?.code || 'nothing';
}

async function readiness(http: string): Promise<{ status: number; text: string }> {
  const answer = await fetch(`http://${http}/readyz`).catch(() => null);
  return { status: answer?.status ?? 0, text: (await answer?.text()) ?? '' };
}

async function isUp(world: World): Promise<boolean> {
  return world.sql('SELECT 1').then(
    () => true,
    () => false,
  );
}

/** Until not a block is left. */
async function fill(file: string): Promise<void> {
  for (const bytes of [1 << 20, 1 << 12]) {
    for (;;) {
      const ended = await writeFile(file, Buffer.alloc(bytes, 1), { flag: 'a' }).then(
        () => false,
        () => true,
      );
      if (ended) break;
    }
  }
}

/** A long transaction elsewhere holds the xmin horizon under load: no table but the log grows, and work goes on as fast. */
export const f25: Scenario = {
  id: 'F25',
  title: 'an old snapshot is held under load',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F25', { settings: { autovacuum_naptime: '1s' } });
    const { cluster } = world;
    const windowMs = full ? 60_000 : 6_000;
    const windows = full ? 3 : 2;
    let cycles = 0;
    let going = true;
    const worker = async (index: number) => {
      const caller = world.caller(`worker-${index}`);
      const runId = await newRun(caller, cluster.replica(index));
      for (let n = 0; going; n += 1) {
        const { lease } = await hold(caller, cluster.replica(index + n), [setEntry(`item/${index}-${n % 8}`)], {
          runId,
        });
        await caller.renew(cluster.replica(n), lease);
        await caller.release(cluster.replica(index), runId, lease);
        cycles += 1;
      }
    };
    const working = Array.from({ length: 16 }, (_, index) => worker(index));
    const measure = async () => {
      const rates: number[] = [];
      for (let window = 0; window < windows; window += 1) {
        const before = cycles;
        await pause(windowMs);
        rates.push(((cycles - before) * 1_000) / windowMs);
      }
      return Math.max(...rates);
    };
    await pause(random.between(1_000, 2_000));
    const [cyclesBefore, sizesBefore] = [cycles, await tableSizes(world)];
    const free = await measure();
    const letGo = await holdSnapshot(stage, world);
    const [cyclesFree, sizesFree] = [cycles, await tableSizes(world)];
    const held = await measure();
    const sizesHeld = await tableSizes(world);
    const cyclesHeld = cycles - cyclesFree;
    await letGo();
    going = false;
    await Promise.all(working);
    const grown = [...sizesHeld]
      .filter(([name]) => name !== 'event')
      .map(([name, bytes]) => {
        const own = bytes - (sizesFree.get(name) ?? 0);
        const usual = ((sizesFree.get(name) ?? 0) - (sizesBefore.get(name) ?? 0)) / (cyclesFree - cyclesBefore);
        return { name, own, most: 4 * usual * cyclesHeld + (4 << 20) };
      })
      .filter(({ own, most }) => own > most);
    const ratio = held / free;
    const notes = [
      `${free.toFixed(0)} cycles/s before, ${held.toFixed(0)} with the snapshot held: ${ratio.toFixed(2)}`,
    ];
    // Nine tenths is promised of a quiet machine; on a busy one only a collapse can be told from its noise.
    const least = full ? 0.9 : 0.6;
    world.expect(ratio >= least, `throughput fell to ${ratio.toFixed(2)} of what it was`);
    world.expect(grown.length === 0, `tables grow: ${JSON.stringify(grown)}`);
    return { ...(await world.judge()), notes };
  },
};

async function holdSnapshot(stage: Stage, { cluster }: World): Promise<() => Promise<void>> {
  const holder = new pg.Client({ connectionString: cluster.postgres.url });
  holder.on('error', () => undefined);
  await holder.connect();
  const end = stage.add('old snapshot', () => holder.end());
  await holder.query('SET idle_in_transaction_session_timeout = 0');
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  await holder.query('SELECT count(*) FROM writ.run');
  return end;
}

/** With indexes and TOAST, in bytes. */
async function tableSizes(world: World): Promise<Map<string, number>> {
  const rows = await world.sql<{ name: string; bytes: string }>(
    `SELECT relname AS name, pg_total_relation_size(oid) AS bytes
     FROM pg_class WHERE relnamespace = 'writ'::regnamespace AND relkind = 'r'`,
  );
  return new Map(rows.map(({ name, bytes }) => [name, Number(bytes)]));
}
