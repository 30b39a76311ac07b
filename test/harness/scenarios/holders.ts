import { timestampMicros } from '../../../src/clients/common/time.js';
import type { Lease } from '../../../src/clients/runner/lease.js';
import type { Replica } from '../cluster.js';
import type { SeenLease } from '../history.js';
import { MAP, World } from '../world.js';
import { checkOf, hold, ofTheKit, setEntry, surely } from './common.js';
import { nothingMissing, type Scenario } from './scenario.js';

const PACED_MAP = `${MAP}
  - { pattern: "paced/{name}", extends: short, ttl: 2s, progress_window: 4s }
`;

/** The worker hangs and its heartbeat goes on; and the reverse. Each is ended for its own reason, and told. */
export const f4: Scenario = {
  id: 'F4',
  title: 'a hung worker whose heartbeat goes on, and the reverse',
  missing: nothingMissing,
  async run({ stage }) {
    const world = await World.open(stage, 'F4', { map: PACED_MAP });
    const [a, b] = [world.cluster.replica(0), world.cluster.replica(1)];
    const caller = world.caller('runner');
    const hung = await hold(caller, a, [setEntry('paced/hung')]);
    const dead = await hold(caller, a, [setEntry('item/dead')], { ttlMs: 2_000 });
    const refused = await world.until(
      () => caller.renew(a, hung.lease, 'the same'),
      (told) => told?.outcome === 'refusal',
    );
    const kind = refused?.outcome === 'refusal' ? refused.refusal : refused?.outcome;
    world.expect(
      kind === 'no_progress' || kind === 'too_late' || kind === 'ended',
      `a hung worker's heartbeat was answered with ${kind}`,
    );
    for (const [{ lease }, expected] of [
      [hung, 'no_progress'],
      [dead, 'expired'],
    ] as const) {
      const reason = await world.until(
        () => checkOf(caller, b, lease),
        (seen) => seen !== 'ok',
      );
      world.expect(reason === expected, `${expected} was told as ${reason}`);
      const renewed = await caller.renew(b, lease, 'moved on');
      world.expect(renewed?.outcome === 'refusal', `${lease.leaseId} was renewed after ${expected}`);
      await hold(
        caller,
        b,
        lease.entries.map(({ resource }) => setEntry(resource)),
      );
    }
    return world.judge();
  },
};

/** An outage that is shorter than half the ttl: jeopardy, then safe, and nothing is lost. */
export const f6: Scenario = {
  id: 'F6',
  title: 'an outage shorter than ttl/2',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F6', { replicas: 1 });
    const replica = world.cluster.replica(0);
    for (let round = 0; round < (full ? 10 : 2); round += 1) {
      const { lease, events } = await ofTheKit(stage, world, [replica], `item/${round}`, 9_000);
      const breaks = random.pick(['callers', 'database'] as const);
      const line = breaks === 'callers' ? replica.network : replica.database;
      line.refusing = true;
      line.cut();
      await world.until(
        async () => events.length,
        (count) => count > 0,
        8_000,
      );
      line.refusing = false;
      await world.until(
        async () => events.length,
        (count) => count > 1,
        8_000,
      );
      world.expect(
        events.join(' then ') === 'jeopardy then safe',
        `the kit said ${events.join(' then ') || 'nothing'} (${breaks})`,
      );
      world.expect(!lease.signal.aborted, 'the signal fired though nothing was lost');
      const target = world.caller('target');
      const held = await shown(world, replica, lease);
      // Who has not written its heartbeat yet, after an outage, decides nothing.
      const reason = await surely(world, () => checkOf(target, replica, held));
      world.expect(reason === 'ok', `the lease is ${reason} after a short outage`);
      await lease.release();
    }
    return world.judge();
  },
};

/** Renewals are blocked: the signal fires before the lease ends on the database's clock, and the release gets out. */
export const f8: Scenario = {
  id: 'F8',
  title: 'renewals are blocked',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F8');
    const [a, b] = [world.cluster.replica(0), world.cluster.replica(1)];
    for (let round = 0; round < (full ? 10 : 2); round += 1) {
      const { lease } = await ofTheKit(stage, world, [a], `item/${round}`, 5_000);
      if (random.chance(0.5)) a.network.hold('up', 'down');
      else a.network.refusing = true;
      a.network.cut();
      await new Promise<void>((resolve) => {
        if (lease.signal.aborted) resolve();
        else lease.signal.addEventListener('abort', () => resolve(), { once: true });
      });
      const [row] = await world.sql<{ now: string }>(
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS now',
      );
      const { lease: stored } = await b.client('operator').lease.getLease({ leaseId: lease.id });
      const marginMs = ((timestampMicros(stored?.expiresAt) ?? 0) - Number(row?.now)) / 1_000;
      world.expect(marginMs > 0, `the signal fired ${-marginMs} ms after the lease's end`);
      const startedAt = performance.now();
      await lease.release().catch(() => undefined);
      const tookMs = performance.now() - startedAt;
      world.expect(tookMs < 15_000, `a release behind a blocked network took ${Math.round(tookMs)} ms`);
      a.network.refusing = false;
      a.network.letGo();
    }
    return world.judge();
  },
};

/** The kit's lease, as an answer shows it. */
async function shown(world: World, replica: Replica, { id, runId }: Lease): Promise<SeenLease> {
  const told = await world.caller('runner').renew(replica, { runId, leaseId: id });
  if (told?.outcome !== 'lease') throw new Error(`${id} is not there: ${JSON.stringify(told)}`);
  return told.lease;
}
