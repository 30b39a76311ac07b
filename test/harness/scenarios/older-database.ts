import { setTimeout as pause } from 'node:timers/promises';
import { toCheckpoint } from '../../../src/cli/event-form.js';
import { WritError } from '../../../src/clients/common/errors.js';
import type { Checkpoint } from '../../../src/services/api.js';
import { formatEvent, formatHeader } from '../../../src/services/log-export.js';
import { type LogVerdict, verifyLog } from '../../../src/services/verify-log.js';
import type { EventRecord } from '../../../src/storage/store.js';
import { becomeStandby, copyServer, restoreCopy, sql } from '../../support/older-database.js';
import type { Replica } from '../cluster.js';
import type { Random } from '../random.js';
import { Workload } from '../workload.js';
import { World } from '../world.js';
import { nothingMissing, type Scenario } from './scenario.js';

/** How an older state comes to be served; each is given the copy's directory. */
const WAYS: Readonly<Record<string, (world: World, copy: string) => Promise<void>>> = {
  'a cold copy is restored': ({ cluster }, copy) => restoreCopy(cluster.postgres, copy),
  'a standby is promoted': promoteStandby,
  'a second standby is promoted after that one died': async (world, copy) => {
    await promoteStandby(world, copy);
    await world.cluster.heal();
    await promoteStandby(world, copy);
  },
  'a dump is loaded into the same cluster': async ({ cluster }) => {
    const admin = cluster.postgres.url.replace(/\/writ$/, '/postgres');
    await sql(
      admin,
      'ALTER DATABASE writ ALLOW_CONNECTIONS false',
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('writ', 'older')",
      'ALTER DATABASE writ RENAME TO newer',
      'ALTER DATABASE older RENAME TO writ',
    );
  },
};

async function promoteStandby({ cluster, recorder }: World, copy: string): Promise<void> {
  await becomeStandby(cluster.postgres, copy);
  // A standby is never believed.
  await recorder.outage('the database was a standby', '', () => pause(1_000));
  await sql(cluster.postgres.url, 'SELECT pg_promote(true)');
}

/** An older state of the database is served: noticed, no token twice, old leases ended. */
export const f13: Scenario = {
  id: 'F13',
  title: 'an older database is served',
  missing: nothingMissing,
  async run({ stage, random, seed, full }) {
    const all = Object.keys(WAYS);
    // One way for each seed, or all of them.
    const ways = full ? all : [all[seed % all.length] ?? ''];
    const results = [];
    for (const way of ways) results.push(await olderDatabase(stage, random.fork(way), way));
    const [first] = results;
    if (first === undefined) throw new Error('there is no way');
    return {
      answers: results.reduce((sum, { answers }) => sum + answers, 0),
      violations: results.flatMap(({ violations }) => violations),
      history: (results.find(({ violations }) => violations.length > 0) ?? first).history,
      notes: [ways.join('; ')],
    };
  },
};

async function olderDatabase(stage: Parameters<typeof World.open>[0], random: Random, way: string) {
  const world = await World.open(stage, 'F13', { ownTarget: true });
  const { cluster, recorder } = world;
  const copy = await stage.directory('copy');
  const workload = Workload.start(world, random.fork('workload'));
  await pause(2_000);
  if (way.startsWith('a dump')) {
    // As of one moment, while everybody goes on.
    const admin = cluster.postgres.url.replace(/\/writ$/, '/postgres');
    await sql(
      admin,
      'ALTER DATABASE writ ALLOW_CONNECTIONS false',
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'writ'",
      'CREATE DATABASE older TEMPLATE writ',
      'ALTER DATABASE writ ALLOW_CONNECTIONS true',
    );
  } else await copyServer(cluster.postgres, copy);
  await cluster.heal();
  // What is answered from here on will be lost.
  const answers = recorder.answers;
  await world.until(
    async () => recorder.answers,
    (now) => now > answers + 100,
  );
  const lost = await signedEnd(world);
  const from = recorder.now();
  await WAYS[way]?.(world, copy);
  recorder.losses.push({ from, until: recorder.now() });
  await cluster.heal();
  const after = recorder.answers;
  await world.until(
    async () => recorder.answers,
    (now) => now > after + 200,
  );
  await workload.stop();
  for (const replica of cluster.replicas) await expectFork(world, replica, lost);
  const signed = await signedEnd(world);
  const flaw = (await verdictOf((await world.exportLog()).slice(0, signed.revision), signed, lost)).problem?.fault;
  world.expect(
    flaw === 'rewritten' || flaw === 'cut_off',
    `that the log is not the one of a checkpoint kept before was found as ${flaw}`,
  );
  const outcome = await world.judge();
  const losses = outcome.history.log.filter(
    ({ kind, body }) => kind === 'database_identified' && body.includes('"lostHistory":true'),
  );
  const noticed =
    losses.length === 0
      ? [{ promise: 'F13', what: `that ${way} was not noticed`, calls: [], revisions: [], about: [] }]
      : [];
  return { ...outcome, violations: [...outcome.violations, ...noticed] };
}

/** Whoever goes on from a place that was lost is told so, and is not led on by what stands there now. */
async function expectFork(world: World, replica: Replica, { revision, hash }: Checkpoint): Promise<void> {
  const resumeFrom = { revision: BigInt(revision), hash };
  const watch = await replica.client('target').fence.watchFences({ signal: AbortSignal.timeout(15_000) });
  watch.send({ said: { $case: 'open', value: { namespace: '', resumeFrom, viewKindsOnly: false } } });
  const told = async () => {
    for await (const { updates } of watch.received) if (updates.length > 0) return 'as if nothing had happened';
    return 'with nothing';
  };
  const answer = await told().catch((error: unknown) => (error instanceof WritError ? error.reason : String(error)));
  watch.cancel();
  world.expect(
    answer === 'HISTORY_FORKED',
    `a watch from revision ${revision}, which was lost, was answered ${answer} at ${replica.name}`,
  );
}

async function signedEnd(world: World): Promise<Checkpoint> {
  const { checkpoint } = await world.cluster.replica(0).client('auditor').audit.getCheckpoint({});
  if (checkpoint === undefined) throw new Error('there is no checkpoint');
  return toCheckpoint(checkpoint);
}

/** How an export is tampered with, what is found of it, and where. */
const TAMPERINGS: Readonly<
  Record<string, readonly [fault: RegExp, tamper: (log: EventRecord[], at: number) => EventRecord[]]>
> = {
  changed: [
    /changed/,
    (log, at) => log.map((record, i) => (i === at ? { ...record, actor: `${record.actor}x` } : record)),
  ],
  removed: [/removed/, (log, at) => log.filter((_, i) => i !== at)],
  inserted: [
    /inserted|reordered/,
    (log, at) => [...log.slice(0, at), { ...(log[at - 1] as EventRecord) }, ...log.slice(at)],
  ],
  swapped: [
    /reordered|inserted|removed/,
    (log, at) => log.map((record, i) => (i === at ? log[at + 1] : i === at + 1 ? log[at] : record) as EventRecord),
  ],
  'cut off': [/cut_off/, (log, at) => log.slice(0, at)],
};

/** Exports are tampered with; honest ones, made while others write, never alarm. */
export const f23: Scenario = {
  id: 'F23',
  title: 'audit exports are tampered with',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F23');
    const workload = Workload.start(world, random.fork('workload'));
    for (let round = 0; round < (full ? 30 : 5); round += 1) {
      await pause(1_000);
      const signed = await signedEnd(world);
      const log = (await world.exportLog()).slice(0, signed.revision);
      const honest = await verdictOf(log, signed);
      world.expect(honest.ok, `an honest export alarms: ${honest.problem?.message}`);
      for (const [name, [fault, tamper]] of Object.entries(TAMPERINGS)) {
        const at = 1 + random.below(log.length - 2);
        const { ok, problem } = await verdictOf(tamper(log, at), signed);
        const named = Math.abs((problem?.revision ?? 0) - (at + 1)) <= 1;
        world.expect(
          !ok && fault.test(problem?.fault ?? '') && named,
          `${name} at revision ${at + 1} was found as ${problem?.fault} at ${problem?.revision}`,
        );
      }
    }
    await workload.stop();
    return world.judge();
  },
};

/** What an export of these events that ends with this checkpoint is verified as, also against one kept before. */
function verdictOf(records: readonly EventRecord[], signed: Checkpoint, kept?: Checkpoint): Promise<LogVerdict> {
  const header = { namespace: signed.namespace, afterRevision: 0, afterHash: null, checkpoint: signed };
  const lines = [formatHeader(header), ...records.map(formatEvent)];
  const trusted = { publicKey: signed.publicKeyPem, ...(kept === undefined ? {} : { kept }) };
  return verifyLog(chunks(Buffer.from(`${lines.join('\n')}\n`)), trusted);
}

async function* chunks(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
