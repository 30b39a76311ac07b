import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { World } from '../world.js';
import { checkOf, hold, newRun, setEntry } from './common.js';
import { nothingMissing, type Scenario } from './scenario.js';

/** The acquire commits, its answer is lost, the client asks again by its key: here, there, and after a restart. */
export const f1: Scenario = {
  id: 'F1',
  title: 'the answer to an acquire is lost',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F1');
    const { cluster } = world;
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    const caller = world.caller('runner', 1_500);
    const rounds = full ? 100 : 15;
    for (let round = 0; round < rounds; round += 1) {
      const runId = await newRun(caller, b);
      const asked = { runId, key: randomUUID(), entries: [setEntry(`item/${round}`)] };
      const line = random.pick([a.network, a.database]);
      line.lose('down');
      const first = caller.acquire(a, asked, { ttlMs: 10_000 });
      await pause(random.between(20, 300));
      line.cut();
      if (round % 5 === 4) await a.kill();
      await first;
      await a.up();
      const answers = [];
      for (const replica of random.shuffled([a, b, a, b]))
        answers.push(await caller.acquire(replica, asked, { ttlMs: 10_000 }));
      const leases = answers.flatMap((told) => (told?.outcome === 'lease' ? [told.lease.leaseId] : []));
      world.expect(new Set(leases).size === 1, `key ${asked.key} came to ${new Set(leases).size} leases`);
    }
    await cluster.heal();
    const grants = (await world.exportLog()).filter(({ kind }) => kind === 'lease_granted').length;
    world.expect(grants === rounds, `${rounds} keys came to ${grants} grants`);
    return world.judge();
  },
};

/** A release races a renewal, and either answer is lost. */
export const f7: Scenario = {
  id: 'F7',
  title: 'a release races a renewal, answers are lost',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F7');
    const { cluster } = world;
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    const caller = world.caller('runner', 1_500);
    for (let round = 0; round < (full ? 100 : 15); round += 1) {
      const held = await hold(caller, b, [setEntry(`item/${round}`)], { ttlMs: 10_000 });
      const { runId, lease } = held;
      const line = random.pick([a.network, a.database]);
      if (random.chance(0.7)) line.lose('down');
      const racing = [caller.release(a, runId, lease), caller.renew(random.pick([a, b]), lease)];
      await pause(random.between(10, 200));
      line.cut();
      await Promise.all(racing);
      await world.until(
        () => caller.release(random.pick([a, b]), runId, lease),
        (told) => told !== null,
      );
      const renewed = await caller.renew(a, lease);
      world.expect(renewed?.outcome !== 'lease', `${lease.leaseId} was renewed after its release`);
      const reason = await checkOf(caller, b, lease);
      world.expect(reason === 'released', `${lease.leaseId} is ${reason} after its release`);
      await hold(caller, b, [setEntry(`item/${round}`)]);
    }
    return world.judge();
  },
};

/** A run is stopped while its acquire is on its way, before the coordinator or before the database. */
export const f14: Scenario = {
  id: 'F14',
  title: 'a run is stopped while its acquire is in flight',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F14');
    const { cluster } = world;
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    const caller = world.caller('runner', 6_000);
    for (let round = 0; round < (full ? 50 : 8); round += 1) {
      const runId = await newRun(caller, a);
      const line = random.pick([a.network, a.database]);
      line.hold('up');
      const asked = { runId, key: randomUUID(), entries: [setEntry(`item/${round}`)] };
      const acquiring = caller.acquire(a, asked, { waitMs: random.chance(0.5) ? 3_000 : 0 });
      await pause(random.between(10, 200));
      const stopped = await caller.stopRun(b, runId);
      world.expect(stopped !== null, `run ${runId} could not be stopped`);
      line.letGo();
      const told = await acquiring;
      world.expect(told?.outcome !== 'lease', `run ${runId} was granted a lease after its stop`);
      const again = await caller.acquire(b, asked);
      world.expect(again?.outcome === 'refusal', `run ${runId} was answered with ${again?.outcome} after its stop`);
    }
    return world.judge();
  },
};

/** A release names a lease in other letters, or another run's: a typed refusal, never a success that released nothing. */
export const f16: Scenario = {
  id: 'F16',
  title: "a release names a lease in other letters, or another run's",
  missing: nothingMissing,
  async run({ stage }) {
    const world = await World.open(stage, 'F16');
    const { cluster, recorder } = world;
    const caller = world.caller('runner');
    const [own, other] = await Promise.all(
      ['item/own', 'item/other'].map((resource) =>
        hold(caller, cluster.replica(0), [setEntry(resource)], { ttlMs: 10_000 }),
      ),
    );
    if (own === undefined || other === undefined) throw new Error('nothing is held');
    const wrong = [own.lease.leaseId.toUpperCase(), other.lease.leaseId, 'ab'.repeat(16), `${own.lease.leaseId} `, ''];
    for (const replica of cluster.replicas) {
      for (const leaseId of wrong) {
        const told = await caller.release(replica, own.runId, { leaseId });
        const fault = recorder.calls.at(-1)?.fault;
        world.expect(
          told === null && /^(LEASE_NOT_FOUND|BAD_REQUEST|INVALID)/.test(fault?.reason ?? ''),
          `the release of ${JSON.stringify(leaseId)} was answered with ${JSON.stringify(told ?? fault)}`,
        );
      }
      for (const { lease } of [own, other]) {
        const reason = await checkOf(caller, replica, lease);
        world.expect(reason === 'ok', `${lease.leaseId} is ${reason} after releases of others`);
      }
    }
    return world.judge();
  },
};
