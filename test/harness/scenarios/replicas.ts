import { setTimeout as pause } from 'node:timers/promises';
import type { Duplex } from '../../../src/clients/common/channel.js';
import { connectWrit } from '../../../src/clients/common/connect.js';
import { createFenceView, type FenceView } from '../../../src/clients/target/fence-view.js';
import { RenewLeasesRequest } from '../../../src/gen/writ/v1/lease_service.js';
import { LeaseState } from '../../../src/gen/writ/v1/types.js';
import { faketimeMissing } from '../../support/faketime.js';
import { acknowledged } from '../checkers/evidence.js';
import type { Replica } from '../cluster.js';
import type { Stage } from '../stage.js';
import { Workload } from '../workload.js';
import { type Outcome, World } from '../world.js';
import { checkOf, hold, newRun, ofTheKit, setEntry, writeOf } from './common.js';
import { nothingMissing, type Scenario } from './scenario.js';

/** One replica stands still past a lease's end, another grants the resource, the first wakes up with what it was asked. */
export const f2: Scenario = {
  id: 'F2',
  title: 'a replica is stopped past an expiry, and continued',
  missing: nothingMissing,
  async run({ stage, full }) {
    const world = await World.open(stage, 'F2');
    const { cluster } = world;
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    const [caller, patient] = [world.caller('runner'), world.caller('patient', 15_000)];
    for (let round = 0; round < (full ? 20 : 3); round += 1) {
      const resource = `item/${round}`;
      const old = await hold(caller, a, [setEntry(resource)], { ttlMs: 1_500 });
      a.process.signal('SIGSTOP');
      const fresh = await hold(patient, b, [setEntry(resource)], { ttlMs: 10_000, waitMs: 8_000 });
      // What the sleeping one is asked is answered when it wakes.
      const asked = Promise.all([
        checkOf(patient, a, old.lease),
        patient.renew(a, old.lease),
        patient.release(a, old.runId, old.lease),
        checkOf(patient, a, fresh.lease),
      ]);
      await pause(100);
      a.process.signal('SIGCONT');
      const [late, renewed] = await asked;
      world.expect(late !== 'ok', 'the old holder was let in');
      world.expect(renewed?.outcome !== 'lease', 'the old holder was renewed');
      const now = await world.until(
        () => checkOf(caller, a, fresh.lease),
        (reason) => reason === 'ok',
      );
      world.expect(now === 'ok', `the new holder is ${now} at the replica that slept`);
      await caller.release(a, fresh.runId, fresh.lease);
    }
    return world.judge();
  },
};

/** The coordinator restarts every half ttl while a holder is dead. */
export const f3: Scenario = {
  id: 'F3',
  title: 'restarts every ttl/2 while a holder is dead',
  missing: nothingMissing,
  async run({ stage, random }) {
    const world = await World.open(stage, 'F3', { replicas: 1 });
    const a = world.cluster.replica(0);
    const caller = world.caller('runner');
    const ttlMs = 8_000;
    const held = await hold(caller, a, [setEntry('item/dead')], { ttlMs });
    const heldUntil = performance.now() + ttlMs;
    while (performance.now() < heldUntil + 1_000) {
      await pause(Math.max(0, Math.min(ttlMs / 2, heldUntil + 1_000 - performance.now())));
      if (random.chance(0.5)) await a.kill();
      else await a.stop();
      await a.up();
      await checkOf(caller, a, held.lease);
    }
    const reason = await checkOf(caller, a, held.lease);
    world.expect(reason === 'expired', `the lease of a dead holder is ${reason} after its time`);
    await hold(caller, a, [setEntry('item/dead')]);
    return world.judge();
  },
};

/** Clocks of replicas jump by an hour under load, and a renewal arrives long after its lease's end. */
export const f12: Scenario = {
  id: 'F12',
  title: 'clocks of replicas jump by an hour, a renewal arrives late',
  missing: () => faketimeMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F12', { clocks: true });
    const { cluster } = world;
    const workload = Workload.start(world, random.fork('workload'));
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    for (let jump = 0; jump < (full ? 40 : 6); jump += 1) {
      await random.pick([a, b]).clock?.set(random.pick([3_600, -3_600, 0, 60, -60]));
      await pause(random.between(500, 1_500));
    }
    await workload.stop();
    // A renewal that is 60 s under way, or as long as it takes to be late.
    const lateMs = full ? 60_000 : 4_000;
    const patient = world.caller('late', lateMs + 20_000);
    const held = await hold(patient, a, [setEntry('item/late')], { ttlMs: 2_000 });
    a.network.hold('up');
    const renewing = patient.renew(a, held.lease);
    await pause(lateMs);
    a.network.letGo();
    const renewed = await renewing;
    world.expect(renewed?.outcome !== 'lease', `a renewal that was ${lateMs} ms under way was taken`);
    for (const replica of [a, b]) {
      const reason = await checkOf(patient, replica, held.lease);
      world.expect(reason === 'expired', `the late holder is ${reason}`);
    }
    return world.judge();
  },
};

/** The appends of one replica are delayed while another commits on the same resources. */
export const f21: Scenario = {
  id: 'F21',
  title: 'one transaction is delayed while later ones commit',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F21', { watches: true });
    const [a] = world.cluster.replicas;
    const views = world.cluster.replicas.map((replica) => viewOf(stage, world, replica));
    const resources = ['item/0', 'item/1', 'item/tree', 'item/tree/left'];
    const workload = Workload.start(world, random.fork('workload'), { resources });
    for (const until = performance.now() + (full ? 120_000 : 12_000); performance.now() < until; ) {
      if (a !== undefined) {
        if (random.chance(0.5)) {
          a.database.hold('up');
          await pause(random.between(100, 1_500));
          a.database.letGo();
        } else {
          a.database.delayMs = random.between(50, 500);
          await pause(random.between(500, 2_000));
          a.database.delayMs = 0;
        }
      }
      await pause(random.between(50, 500));
    }
    await workload.stop();
    await world.cluster.heal();
    // What followed the log through all that knows what is so now.
    const caller = world.caller('runner', 15_000);
    const [ended, alive] = await Promise.all(
      ['seen/ended', 'seen/alive'].map((resource) =>
        hold(caller, world.cluster.replica(1), [setEntry(resource)], { ttlMs: 10_000 }),
      ),
    );
    if (ended === undefined || alive === undefined) throw new Error('nothing is held');
    await caller.release(world.cluster.replica(0), ended.runId, ended.lease);
    for (const view of views) {
      for (const [{ lease }, expected] of [
        [alive, 'ok'],
        [ended, 'released'],
      ] as const) {
        const { resource, action, token } = writeOf(lease);
        const question = { leaseId: lease.leaseId, writes: [{ resource, action, token: BigInt(token) }] };
        const seen = await world.until(
          async () => view.check(question).reason,
          (reason) => reason === expected,
          8_000,
        );
        world.expect(seen === expected, `a watch tells of ${resource} as ${seen}, and it is ${expected}`);
      }
    }
    const outcome = await world.judge();
    return { ...outcome, notes: [`watches told ${world.told} changes, each held against the log`] };
  },
};

/** Follows the fences at one replica, from now on. */
function viewOf(stage: Stage, { cluster }: World, replica: Replica): FenceView {
  const client = connectWrit({ endpoint: replica.network.endpoint, token: cluster.tokens.target });
  const view = createFenceView({ client });
  stage.add('view', async () => {
    view.close();
    client.close();
  });
  return view;
}

/**
 * What is under way at a replica as it shuts down: a call that waits for a lease, and streams, each of which the replica
 * surely knows. Returns how to learn what each was told at its end; empty: what it should be.
 */
async function underWay(world: World, replica: Replica, other: Replica, round: number) {
  const caller = world.caller('under-way', 30_000);
  const entries = [setEntry(`kept/under-way-${round}`)];
  await hold(caller, other, entries, { ttlMs: 10_000 });
  const runId = await newRun(caller, other);
  // Just after a restart the caller may not have found the replica again: then the call would not get there at all.
  const { run } = replica.client('runner');
  await world.until(
    () => run.getRun({ runId }).catch(() => null),
    (found) => found !== null,
  );
  const waiting = caller.acquire(replica, { runId, key: `under-way-${round}`, entries }, { waitMs: 25_000 });
  const { lease } = other.client('operator');
  await world.until(
    // A busy replica may say that it cannot tell just now.
    async () => (await lease.listLeases({ runId }).catch(() => null))?.leases ?? [],
    (leases) => leases.some(({ state }) => state === LeaseState.LEASE_STATE_WAITING),
  );
  const ofWatch = await farewellOf(async () => {
    const watch = await replica.client('target').fence.watchFences();
    watch.send({ said: { $case: 'open', value: { namespace: '', resumeFrom: undefined, viewKindsOnly: true } } });
    return watch;
  });
  const ofSession = await farewellOf(async () => {
    const session = await replica.client('runner').lease.session();
    const value = RenewLeasesRequest.fromPartial({ runId, renewals: [{ leaseId: 'ab'.repeat(16) }] });
    session.send({ calls: [{ number: 1, requestId: '', call: { $case: 'renewLeases', value } }] });
    return session;
  });
  return async () => {
    const told = await waiting;
    const fault = world.recorder.calls.findLast(({ by, kind }) => by === 'under-way' && kind === 'acquire')?.fault;
    const answered = told !== null || fault?.reason === 'SHUTTING_DOWN';
    return {
      'a call that waits': answered ? '' : `${fault?.code} ${fault?.reason}`,
      'a watch': await ofWatch(),
      'a session': await ofSession(),
    };
  };
}

type Stream = Pick<Duplex<never, { readonly goingAway: boolean }>, 'received' | 'cancel'>;

/** Resolves once something has come on the stream; then: empty if it was told to move on before it ended. */
async function farewellOf(open: () => Promise<Stream>): Promise<() => Promise<string>> {
  for (let tries = 0; ; tries += 1) {
    const stream = await open();
    const messages = stream.received[Symbol.asyncIterator]();
    try {
      const first = await messages.next();
      const end = untilGoingAway(first, messages)
        .catch(String)
        .finally(() => stream.cancel());
      return () => end;
    } catch (error) {
      // A busy replica may say that it cannot just now.
      if (tries === 20) throw error;
      await pause(200);
    }
  }
}

async function untilGoingAway<M extends { readonly goingAway: boolean }>(
  first: IteratorResult<M>,
  messages: AsyncIterator<M>,
): Promise<string> {
  for (let next = first; next.done !== true; next = await messages.next()) if (next.value.goingAway) return '';
  return 'no word';
}

/** Replicas are shut down under load, again and again: each drains and ends by its deadline, and callers go elsewhere. */
export const f26: Scenario = {
  id: 'F26',
  title: 'shutdown under load',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const deadlineMs = 5_000;
    const world = await World.open(stage, 'F26', { env: { WRIT_SHUTDOWN_DEADLINE: `${deadlineMs}ms` } });
    const [a, b] = [world.cluster.replica(0), world.cluster.replica(1)];
    const { lease, events } = await ofTheKit(stage, world, [a, b], 'kept/by-the-kit', 8_000);
    const workload = Workload.start(world, random.fork('workload'));
    const rounds = full ? 30 : 5;
    let slowestMs = 0;
    for (let round = 0; round < rounds; round += 1) {
      await pause(random.between(500, 2_000));
      const [replica] = random.shuffled(world.cluster.replicas);
      if (replica === undefined) throw new Error('there is no replica');
      const others = world.cluster.replicas.filter((one) => one !== replica);
      const farewells = await underWay(world, replica, random.pick(others), round);
      const startedAt = performance.now();
      const code = await replica.stop();
      const tookMs = performance.now() - startedAt;
      slowestMs = Math.max(slowestMs, tookMs);
      world.expect(code === 0, `replica ${replica.name} ended with ${code}`);
      world.expect(
        tookMs < deadlineMs + 2_000,
        `replica ${replica.name} took ${Math.round(tookMs)} ms to end, the deadline is ${deadlineMs} ms`,
      );
      for (const [what, farewell] of Object.entries(await farewells()))
        world.expect(farewell === '', `${what} at ${replica.name}, which was shut down, ended with ${farewell}`);
      const caller = world.caller('elsewhere');
      const lease = await hold(caller, random.pick(others), [setEntry(`item/elsewhere-${round}`)]).catch(
        (error) => error,
      );
      world.expect(!(lease instanceof Error), `nobody else served meanwhile: ${lease}`);
      await replica.up();
    }
    await workload.stop();
    const isLost = events.includes('lost');
    await lease.release();
    const outcome = await world.judge();
    const lost = {
      promise: 'F26',
      what: `a lease of the runner kit was lost, though one replica always served: ${endOf(outcome, lease.id)}`,
      ...{ calls: [], revisions: [], about: [lease.id] },
    };
    const changes = acknowledged(outcome.history);
    const kept = changes.filter(({ revision }) => revision !== null).length;
    const note = `${rounds} shutdowns, the slowest ${Math.round(slowestMs)} ms; of ${changes.length} acknowledged changes ${kept} are in the log`;
    return { ...outcome, violations: [...outcome.violations, ...(isLost ? [lost] : [])], notes: [note] };
  },
};

/** How a lease ended, and how slow the machine was: what it was lost by. */
function endOf({ history }: Outcome, leaseId: string): string {
  const own = history.log.filter((record) => record.body.includes(leaseId));
  const renewals = own.filter(({ kind }) => kind === 'leases_renewed');
  const end = own.find(({ kind }) => kind === 'lease_ended');
  const reason = /"endReason":"(\w+)"/.exec(end?.body ?? '')?.[1];
  const sinceMs = Math.round(((end?.time ?? 0) - (renewals.at(-1)?.time ?? 0)) / 1_000);
  const took = history.calls
    .flatMap(({ sent, answered }) => (answered === null ? [] : [(answered - sent) / 1_000]))
    .sort((a, b) => a - b);
  const [median, slow] = [0.5, 0.95].map((share) => Math.round(took[Math.floor(took.length * share)] ?? 0));
  return `${reason} ${sinceMs} ms after its last of ${renewals.length} renewals; calls took ${median} ms in the median, ${slow} at the 95th percentile`;
}
