import { setTimeout as pause } from 'node:timers/promises';
import type { Caller } from '../calls.js';
import type { Random } from '../random.js';
import { Workload } from '../workload.js';
import { World } from '../world.js';
import { checkOf, hold, newRun, setEntry, surely, writeOf } from './common.js';
import { nothingMissing, type Scenario } from './scenario.js';

/** Overlapping sets in shuffled order, clients that vanish in the middle: no deadlock, no residue. */
export const f10: Scenario = {
  id: 'F10',
  title: 'overlapping sets in shuffled order, clients vanish',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F10');
    const { cluster } = world;
    const resources = Array.from({ length: 8 }, (_, i) => `item/${i}`);
    const workload = Workload.start(world, random.fork('workload'), { resources, runners: 14, operators: false });
    for (const until = performance.now() + (full ? 120_000 : 12_000); performance.now() < until; ) {
      await pause(random.between(200, 1_500));
      // Everybody who is connected there is gone at once, with whatever was asked.
      random.pick(cluster.replicas).network.cut();
    }
    await workload.stop();
    await cluster.heal();
    const operator = cluster.replica(0).client('operator');
    await operator.run.stopRuns({ principal: 'runner', reason: 'done', idempotencyKey: 'done' });
    for (const replica of cluster.replicas) {
      const left = await world.until(
        async () => (await replica.client('operator').lease.listLeases({})).leases,
        (leases) => leases.length === 0,
      );
      world.expect(left.length === 0, `${left.length} leases are left when everybody is gone`);
    }
    await hold(
      world.caller('last'),
      cluster.replica(1),
      resources.map((resource) => setEntry(resource)),
    );
    return world.judge();
  },
};

/** Checks race revocations over two replicas: nothing is allowed once the revocation has returned. */
export const f17: Scenario = {
  id: 'F17',
  title: 'checks race revocations over two replicas',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F17');
    const pairs = full ? 10_000 : 400;
    const workers = 16;
    let next = 0;
    const racer = async (caller: Caller, own: Random) => {
      let runId = '';
      for (let index = next++; index < pairs; index = next++) {
        if (runId === '' || index % 50 === 0) runId = await newRun(caller, world.cluster.replica(0));
        const { lease } = await hold(caller, own.pick(world.cluster.replicas), [setEntry(`item/${index}`)], {
          runId,
          ttlMs: 10_000,
        });
        const checking = world.cluster.replicas.map((replica) => caller.check(replica, lease, [writeOf(lease)]));
        const revoked = await caller.revoke(own.pick(world.cluster.replicas), lease.leaseId);
        world.expect(revoked !== null, `${lease.leaseId} could not be revoked`);
        const late = await Promise.all(
          world.cluster.replicas.map((replica) => caller.check(replica, lease, [writeOf(lease)])),
        );
        world.expect(
          late.every((told) => told?.allowed === false),
          `a check of ${lease.leaseId} was allowed after its revocation`,
        );
        await Promise.all(checking);
      }
    };
    await Promise.all(
      Array.from({ length: workers }, (_, i) => racer(world.caller(`racer-${i}`, 15_000), random.fork(`racer-${i}`))),
    );
    return world.judge();
  },
};

/** Very many leases end in one moment, then the coordinator restarts: ended means denied at once, and checks go on. */
export const f22: Scenario = {
  id: 'F22',
  title: 'very many leases end together, then a restart',
  missing: nothingMissing,
  async run({ stage, random, full }) {
    const world = await World.open(stage, 'F22', { map: LONG_MAP, env: { WRIT_MAX_LEASES_PER_RUN: '1000000' } });
    const { cluster } = world;
    const [a, b] = [cluster.replica(0), cluster.replica(1)];
    const leases = full ? 100_000 : 2_000;
    const caller = world.caller('many', 60_000);
    const runId = await newRun(caller, a, 7_200);
    const samples: Awaited<ReturnType<typeof hold>>[] = [];
    const take = async (first: number, last: number, endsAt: number) => {
      let next = first;
      const taker = async () => {
        for (let index = next++; index < last; index = next++) {
          const ttlMs = Math.max(1_000, endsAt - performance.now());
          const held = await hold(caller, a, [setEntry(`item/${index}`)], { runId, ttlMs });
          if (index % Math.ceil(leases / 50) === 0) samples.push(held);
        }
      };
      await Promise.all(Array.from({ length: 32 }, taker));
    };
    // How long all of them take is this machine's to say.
    const pilots = Math.ceil(leases / 50);
    const startedAt = performance.now();
    await take(leases, leases + pilots, startedAt);
    const endsAt = performance.now() + (performance.now() - startedAt) * (leases / pilots) * 1.3 + 5_000;
    await take(0, leases, endsAt);
    const live = await hold(caller, b, [setEntry('item/live')], { runId, ttlMs: 600_000 });
    const latency = async (during: number) => {
      const times: number[] = [];
      for (const until = performance.now() + during; performance.now() < until; ) {
        const startedAt = performance.now();
        const told = await caller.check(random.pick([a, b]), live.lease, [writeOf(live.lease)]);
        times.push(performance.now() - startedAt);
        world.expect(told?.allowed === true, 'the one that lives on was refused');
      }
      return times.sort((x, y) => x - y)[Math.floor(times.length * 0.99)] ?? 0;
    };
    const idle = await latency(Math.min(2_000, Math.max(500, endsAt - performance.now() - 500)));
    await pause(Math.max(0, endsAt - performance.now()));
    const crowded = latency(3_000);
    samples.sort((x, y) => (x.lease.expiresAt ?? 0) - (y.lease.expiresAt ?? 0));
    for (const { lease } of samples) {
      // Its end is the database's to say, whose sweeper is still at the others.
      await untilDatabase(world, lease.expiresAt ?? 0);
      for (const replica of [a, b]) {
        const reason = await surely(world, () => checkOf(caller, replica, lease));
        world.expect(reason === 'expired', `${lease.leaseId} is ${reason} at ${replica.name} after its end`);
      }
      const renewed = await surely(world, () => caller.renew(random.pick([a, b]), lease));
      world.expect(renewed?.outcome === 'refusal', `${lease.leaseId} was renewed as ${renewed?.outcome} after its end`);
    }
    const p99 = await crowded;
    await a.kill();
    const killedAt = performance.now();
    await a.up();
    const readyMs = performance.now() - killedAt;
    for (const { lease } of samples) {
      const reason = await surely(world, () => checkOf(caller, a, lease));
      world.expect(reason === 'expired', `${lease.leaseId} is ${reason} after its end and a restart`);
    }
    const notes = [
      `${leases} leases; a check's p99 ${idle.toFixed(1)} ms before, ${p99.toFixed(1)} ms while they ended; ready ${readyMs.toFixed(0)} ms after the kill`,
    ];
    return { ...(await world.judge()), notes };
  },
};

/** Returns once the database's clock shows that time. */
async function untilDatabase(world: World, micros: number): Promise<void> {
  for (let leftMs = 1; leftMs > 0; ) {
    const [row] = await world.sql<{ left: string }>(
      'SELECT ($1::bigint - (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)::text AS left',
      [micros],
    );
    leftMs = Number(row?.left) / 1_000;
    await pause(Math.max(0, leftMs));
  }
}

const LONG_MAP = `
version: 1
kinds:
  - pattern: item/{name...}
    ttl: 60s
    max_ttl: 1h
    max_hold: 2h
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } }
`;

/** Two runs declare different coarse areas and write the same file: the undeclared write is refused; the map can tie them. */
export const f15: Scenario = {
  id: 'F15',
  title: 'coarse areas that share a file',
  missing: nothingMissing,
  async run({ stage }) {
    const world = await World.open(stage, 'F15', { map: AREAS });
    const [a, b] = [world.cluster.replica(0), world.cluster.replica(1)];
    const caller = world.caller('runner');
    const ui = await hold(caller, a, [setEntry('area/ui', 'subtree')]);
    const api = await hold(caller, b, [setEntry('area/api', 'subtree')]);
    for (const { lease } of [ui, api]) {
      for (const replica of [a, b]) {
        const own = await caller.check(replica, lease, [
          { ...writeOf(lease), resource: `${writeOf(lease).resource}/own.ts` },
        ]);
        world.expect(own?.allowed === true, 'a declared write was refused');
        const shared = await caller.check(replica, lease, [{ ...writeOf(lease), resource: 'area/shared/types.ts' }]);
        world.expect(
          shared?.results[0]?.reason === 'not_covered',
          `the undeclared write was ${shared?.results[0]?.reason}`,
        );
      }
    }
    for (const { runId, lease } of [ui, api]) await caller.release(a, runId, lease);
    const map = await a.client('admin').conflictMap.getConflictMap({});
    await caller.putMap(a, TIED_AREAS, Number(map.version));
    const first = await hold(caller, a, [setEntry('area/ui', 'subtree')]);
    const runId = await newRun(caller, b);
    const second = await caller.acquire(b, { runId, key: 'second', entries: [setEntry('area/api', 'subtree')] });
    world.expect(
      second?.outcome === 'refusal' && second.refusal === 'held',
      'areas that the map ties were both granted',
    );
    await caller.release(b, first.runId, first.lease);
    return world.judge();
  },
};

const AREAS = `
version: 1
kinds:
  - pattern: area/{name...}
    ttl: 10s
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } }
`;

const TIED_AREAS = `${AREAS}
conflicts: [ { between: ["area/ui/{file...}", "area/api/{file...}"], because: "both write area/shared" } ]
`;
