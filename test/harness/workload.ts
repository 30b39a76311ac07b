import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { connectWrit } from '../../src/clients/common/connect.js';
import { createFenceView } from '../../src/clients/target/fence-view.js';
import { Access, Scope } from '../../src/gen/writ/v1/types.js';
import type { Caller } from './calls.js';
import type { Replica } from './cluster.js';
import type { AskedEntry, SeenEntry, SeenLease } from './history.js';
import { kitRunner } from './kit-runner.js';
import { parent } from './parents.js';
import type { Random } from './random.js';
import type { Presentable } from './seen.js';
import { MAP, TIED_MAP, type World } from './world.js';

export interface WorkloadOptions {
  /** How many of each; a third of the runners and half of the targets ask on streams. */
  readonly runners?: number;
  readonly targets?: number;
  /** Runs of the runner kit, all on one client. */
  readonly kitRunners?: number;
  /** Runs that delegate to child runs. */
  readonly parents?: number;
  /** What runners ask for. */
  readonly resources?: readonly string[];
  /** Of an action between two steps, at most. */
  readonly restMs?: number;
  /** Operators revoke and stop; admins put maps. */
  readonly operators?: boolean;
}

/** A lease as its run presents it to targets, also long after it is over. */
export interface Presented {
  readonly lease: Pick<SeenLease, 'leaseId' | 'runId' | 'entries'>;
  readonly credentials: readonly Presentable[];
}

const RESOURCES = [
  ...Array.from({ length: 6 }, (_, i) => `item/${i}`),
  'item/tree',
  'item/tree/left',
  'item/tree/right',
  'loc/0',
  'loc/1',
  'seen/0',
  'seen/1',
  'job/0',
  'job/1',
  'token/acme',
  'config/acme',
];
/** What is presented, old ones too. */
const REMEMBERED = 60;

/**
 * Agent runs that take, renew, give back and forget write sets; targets that check what is presented to them, also what
 * is stale, another's or made up; operators that revoke, stop and settle; an admin that changes the map. What each does
 * is drawn from the seed; what comes of it depends on the machine.
 */
export class Workload {
  going = true;
  private readonly working: Promise<void>[] = [];
  private readonly failures: unknown[] = [];
  private readonly ends: (() => void)[] = [];
  private readonly presented: Presented[] = [];
  private readonly runs: string[] = [];

  private constructor(
    readonly world: World,
    private readonly random: Random,
    private readonly options: Required<WorkloadOptions>,
  ) {}

  static start(world: World, random: Random, options: WorkloadOptions = {}): Workload {
    const some = { runners: 9, targets: 6, kitRunners: 2, parents: 3 };
    const all = { ...some, resources: RESOURCES, restMs: 40, operators: true, ...options };
    const workload = new Workload(world, random, all);
    // Also when a scenario breaks off: whoever goes on asking keeps the process from its end.
    world.stage.add('workload', () => workload.stop());
    const caller = (name: string): Caller => world.caller(name);
    const streamer = (name: string): Caller => world.streamer(name);
    for (let i = 0; i < all.runners; i += 1) {
      const own = i % 3 === 0 ? streamer(`session-runner-${i}`) : caller(`runner-${i}`);
      workload.actor(own, (...drawn) => workload.runner(...drawn));
    }
    for (let i = 0; i < all.targets; i += 1) {
      const own = i % 2 === 0 ? streamer(`stream-target-${i}`) : caller(`target-${i}`);
      workload.actor(own, (...drawn) => workload.target(...drawn));
    }
    for (let i = 0; i < all.parents; i += 1) {
      const own = i % 2 === 0 ? streamer(`session-parent-${i}`) : caller(`parent-${i}`);
      workload.actor(own, (...drawn) => parent(workload, ...drawn));
    }
    for (const name of ['view-0', 'view-1']) workload.follower(name);
    workload.startKit(all.kitRunners);
    if (all.operators) {
      workload.actor(caller('operator'), (...drawn) => workload.operator(...drawn));
      workload.actor(caller('admin'), (...drawn) => workload.admin(...drawn));
    }
    return workload;
  }

  /** Returns when everybody has come to an end; idempotent. */
  async stop(): Promise<void> {
    this.going = false;
    await Promise.all(this.working);
    for (const end of this.ends.splice(0)) end();
    const [failure] = this.failures.splice(0);
    if (failure !== undefined) throw failure;
  }

  private actor(caller: Caller, work: (caller: Caller, random: Random) => Promise<void>): void {
    const random = this.random.fork(caller.name);
    const working = (async () => {
      while (this.going) {
        await work(caller, random);
        await this.rest(random);
      }
    })();
    this.working.push(working.catch((error: unknown) => void this.failures.push(error)));
  }

  rest(random: Random, mostMs = this.options.restMs): Promise<void> {
    return pause(random.next() * mostMs);
  }

  somewhere(random: Random): Replica {
    return random.pick(this.world.cluster.replicas);
  }

  /** Some authority ends soon, and a child's before its parent's. Null: it was not made. */
  async newRun(caller: Caller, random: Random, parentRunId = '', depth = 0): Promise<string | null> {
    const seconds = random.chance(0.2) && parentRunId === '' ? 8 : 600 - 100 * depth;
    const runId = await caller.createRun(this.somewhere(random), seconds, { parentRunId });
    if (runId !== null) this.runs.push(runId);
    return runId;
  }

  /** One run, for a few leases. */
  private async runner(caller: Caller, random: Random): Promise<void> {
    const runId = await this.newRun(caller, random);
    if (runId === null) return;
    const rounds = 1 + random.below(6);
    for (let round = 0; this.going && round < rounds; round += 1) await this.hold(caller, random, runId);
    if (random.chance(0.1)) await caller.stopRun(this.somewhere(random), runId);
  }

  private async hold(caller: Caller, random: Random, runId: string): Promise<void> {
    const asked = { runId, key: randomUUID(), entries: this.writeSet(random) };
    const more = {
      ttlMs: this.ttlMs(random, asked.entries),
      waitMs: random.chance(0.5) ? random.between(500, 6_000) : 0,
      audiences: random.chance(0.3) ? ['target'] : [],
    };
    let granted: Presented | null = null;
    for (let tries = 0; this.going && granted === null && tries < 4; tries += 1) {
      const told = await caller.acquire(this.somewhere(random), asked, more);
      if (told?.outcome === 'refusal') return;
      if (told?.outcome === 'lease') granted = { lease: told.lease, credentials: told.tokens };
      else if (told !== null) await Promise.race([told.settled, pause(more.waitMs)]);
      else if (random.chance(0.2)) {
        // It gives up on what it does not know to have.
        await caller.release(this.somewhere(random), runId, { key: asked.key });
        return;
      } else await this.rest(random, 300);
    }
    if (granted === null) return;
    this.present(granted);
    // The same once more, elsewhere: one lease, one token.
    if (random.chance(0.15)) await caller.acquire(this.somewhere(random), asked, more);
    await this.use(caller, random, granted);
  }

  private async use(caller: Caller, random: Random, { lease }: Presented): Promise<void> {
    const work = random.below(5);
    for (let step = 0; this.going && step < work; step += 1) {
      await this.rest(random, 400);
      if (random.chance(0.2)) {
        const issued = await caller.issue(this.somewhere(random), lease, 'target');
        if (issued !== null) this.present({ lease, credentials: [issued] });
      }
      if (random.chance(0.2)) await this.amend(caller, random, lease);
      const renewed = await caller.renew(this.somewhere(random), lease);
      if (renewed?.outcome === 'refusal') return;
    }
    const { runId, leaseId } = lease;
    const end = random.next();
    // A quarter is forgotten: time ends it.
    if (end < 0.25) return;
    if (end < 0.4)
      await Promise.all([
        caller.renew(this.somewhere(random), lease),
        caller.release(this.somewhere(random), runId, { leaseId }),
      ]);
    else await caller.release(this.somewhere(random), runId, { leaseId });
  }

  /** Asks for one more, or gives one up. */
  private async amend(caller: Caller, random: Random, lease: Presented['lease']): Promise<void> {
    const { entries } = lease;
    const more = {
      resource: random.pick(this.options.resources),
      access: 'write',
      scope: 'exact',
      actions: ['set'],
    } as const;
    const gives = entries.length > 1 && random.chance(0.5);
    await caller.amend(
      this.somewhere(random),
      lease,
      gives ? { remove: [random.pick(entries).resource] } : { add: [more] },
    );
  }

  /** Credentials of local kinds live longer than most leases here. */
  ttlMs(random: Random, entries: readonly AskedEntry[]): number {
    return entries.some(({ resource }) => resource.startsWith('loc/')) ? 9_000 : random.between(1_000, 4_000);
  }

  writeSet(random: Random): AskedEntry[] {
    const resources = random.shuffled(this.options.resources).slice(0, 1 + random.below(3));
    return resources.map((resource) => {
      const stable = random.chance(0.1);
      const isJob = resource.startsWith('job/');
      return {
        resource,
        access: stable ? 'stable_read' : 'write',
        scope: resource === 'item/tree' && random.chance(0.5) ? 'subtree' : 'exact',
        actions: stable ? [] : [isJob || random.chance(0.75) ? 'set' : 'patch'],
      };
    });
  }

  present(one: Presented): void {
    this.presented.push(one);
    if (this.presented.length > REMEMBERED) this.presented.shift();
  }

  /** One request that somebody sends to a target. */
  private async target(caller: Caller, random: Random): Promise<void> {
    const [newest] = this.presented.slice(-1);
    if (newest === undefined) return;
    const { lease, credentials } = random.chance(0.3) ? newest : random.pick(this.presented);
    const entry = random.pick(lease.entries.filter(({ access }) => access === 'write'));
    if (entry === undefined) return;
    const write = this.presentedWrite(random, entry);
    const admissions: string[] = [];
    const [credential] = credentials;
    const by =
      credential !== undefined && random.chance(0.5)
        ? { credential }
        : { leaseId: lease.leaseId, runId: random.chance(0.05) ? random.pick(this.runs) : lease.runId };
    const ask = () => caller.check(this.somewhere(random), by, [write], admissions);
    if (random.chance(0.4)) {
      if (entry.exclusive && random.chance(0.3)) await this.world.target.open(entry.resource, entry.token);
      await this.world.target.write(
        lease,
        { ...entry, ...write },
        write.action,
        async () => (await ask())?.allowed === true,
      );
    } else await ask();
    if (admissions.length > 0 && random.chance(0.8)) await this.report(random, admissions);
  }

  /** Runs of the kit share a client, and so a session, which goes to whatever replica can be reached. */
  private startKit(runners: number): void {
    const { cluster } = this.world;
    const endpoint = cluster.replicas.map((replica) => replica.network.endpoint);
    const client = connectWrit({ endpoint, token: cluster.tokens.runner });
    this.ends.push(() => client.close());
    for (let i = 0; i < runners; i += 1)
      this.actor(this.world.caller(`kit-runner-${i}`), (...drawn) => kitRunner(this, client, ...drawn));
  }

  /** A target that follows the fences, on whatever replica, and decides by what it knows. */
  private follower(name: string): void {
    const { cluster, recorder } = this.world;
    const endpoint = cluster.replicas.map((replica) => replica.network.endpoint);
    const client = connectWrit({ endpoint, token: cluster.tokens.target });
    const view = createFenceView({ client });
    this.ends.push(() => {
      view.close();
      client.close();
    });
    this.actor(this.world.caller(name), async (_, random) => {
      const entryOf = ({ lease }: Presented) => lease.entries.find(({ resource }) => resource.startsWith('seen/'));
      const followed = this.presented.filter((one) => entryOf(one)?.access === 'write');
      if (followed.length === 0) return;
      const one = random.pick(followed);
      const { leaseId, runId } = one.lease;
      const write = this.presentedWrite(random, entryOf(one) as SeenEntry);
      await recorder.call('view', name, name, { leaseId, runId, writes: [write] }, async () => {
        const writes = [{ ...write, token: BigInt(write.token) }];
        const { allowed, reason } = view.check({ leaseId, presenterRunId: runId, writes });
        return { allowed, reason };
      });
    });
  }

  /** As the run was granted it, or not quite. */
  private presentedWrite(random: Random, { resource, actions, token }: SeenEntry) {
    const write = { resource, action: actions[0] ?? 'set', token, observedVersion: 'v1' };
    const luck = random.next();
    if (luck < 0.05) return { ...write, resource: random.pick(this.options.resources) };
    if (luck < 0.1) return { ...write, action: write.action === 'set' ? 'patch' : 'set' };
    if (luck < 0.15) return { ...write, token: token - 1 - random.below(1_000) };
    return write;
  }

  private async report(random: Random, admissions: readonly string[]): Promise<void> {
    const writes = admissions.map((admissionId) => ({ admissionId, result: random.chance(0.7) ? 1 : 2 }));
    await this.somewhere(random)
      .client('target')
      .fence.reportWrite({ writes }, { timeoutMs: 4_000 })
      .catch(() => undefined);
  }

  private async operator(caller: Caller, random: Random): Promise<void> {
    await this.rest(random, 400);
    const [one] = random.shuffled(this.presented.slice(-10));
    const luck = random.next();
    if (luck < 0.1) await this.freeze(random);
    else if (luck < 0.15) await this.takeOver(random);
    else if (luck < 0.25) await caller.checkpoint(this.somewhere(random));
    else if (luck < 0.5) await this.settle(random);
    else if (one === undefined) return;
    else if (luck < 0.8) await caller.revoke(this.somewhere(random), one.lease.leaseId);
    else await caller.stopRun(this.somewhere(random), one.lease.runId);
  }

  /** What nobody reported is found out by a person, by and by. */
  private async settle(random: Random): Promise<void> {
    const { lease } = this.somewhere(random).client('operator');
    const inDoubt = await lease.listInDoubt({}, { timeoutMs: 4_000 }).catch(() => null);
    for (const { admissionId } of inDoubt?.writes ?? [])
      await lease
        .settleInDoubt({ admissionId, outcome: 1 + random.below(2), reason: 'looked' }, { timeoutMs: 4_000 })
        .catch(() => undefined);
  }

  /** For a moment; the pattern is thawed by whoever froze it. */
  private async freeze(random: Random): Promise<void> {
    const { lease } = this.somewhere(random).client('operator');
    const pattern = random.pick(['item/0', 'item/tree/{part}', 'token/{tenant}']);
    const denied = { pattern, denyChecks: random.chance(0.5), reason: 'the harness' };
    await lease.freeze(denied, { timeoutMs: 4_000 }).catch(() => undefined);
    await this.rest(random, 1_000);
    for (let tries = 0; tries < 20; tries += 1) {
      const operator = this.somewhere(random).client('operator');
      const thawed = await operator.lease.thaw({ pattern, reason: 'over' }, { timeoutMs: 4_000 }).catch(() => null);
      if (thawed !== null) return;
    }
  }

  /** An emergency: a run gets what others hold. */
  private async takeOver(random: Random): Promise<void> {
    const runId = random.pick(this.runs);
    if (runId === undefined) return;
    const resource = random.pick(this.options.resources);
    const entry = { resource, access: Access.ACCESS_WRITE, scope: Scope.SCOPE_EXACT, actions: ['set'] };
    await this.somewhere(random)
      .client('operator')
      .lease.takeOver(
        { runId, entries: [entry], idempotencyKey: randomUUID(), reason: 'the harness' },
        { timeoutMs: 4_000 },
      )
      .catch(() => undefined);
  }

  private async admin(caller: Caller, random: Random): Promise<void> {
    await this.rest(random, 4_000);
    const replica = this.somewhere(random);
    const map = await replica
      .client('admin')
      .conflictMap.getConflictMap({}, { timeoutMs: 4_000 })
      .catch(() => null);
    if (map !== null) await caller.putMap(replica, random.chance(0.5) ? TIED_MAP : MAP, Number(map.version));
  }
}
