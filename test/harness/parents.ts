import { randomUUID } from 'node:crypto';
import type { Caller } from './calls.js';
import type { AskedEntry, SeenEntry, SeenLease } from './history.js';
import type { Random } from './random.js';
import type { Workload } from './workload.js';

type Held = Pick<SeenLease, 'leaseId' | 'runId' | 'entries'>;

/** How deep parts of parts go. */
const DEEPEST = 2;

/** A run that gives parts of its write set to child runs, and takes them back, or ends while they are out. */
export async function parent(workload: Workload, caller: Caller, random: Random): Promise<void> {
  const runId = await workload.newRun(caller, random);
  if (runId === null) return;
  // Something that only parents want, so that much of it is granted.
  const family: AskedEntry = {
    resource: `item/family-${random.below(3)}`,
    access: 'write',
    scope: 'subtree',
    actions: ['set'],
  };
  const entries = random.chance(0.6) ? [family] : [family, ...workload.writeSet(random)];
  const asked = { runId, key: randomUUID(), entries };
  const told = await caller.acquire(workload.somewhere(random), asked, { ttlMs: 9_000 });
  if (told?.outcome !== 'lease') return workload.rest(random, 300);
  await delegate(workload, caller, random, told.lease, 1);
  await end(workload, caller, random, told.lease);
}

/** One child, or two at once; the lease is renewed meanwhile. */
async function delegate(workload: Workload, caller: Caller, random: Random, whole: Held, depth: number): Promise<void> {
  workload.present({ lease: whole, credentials: [] });
  const children = Array.from({ length: 1 + random.below(2) }, () => child(workload, caller, random, whole, depth));
  // Some do not wait for their children.
  const patience = random.chance(0.7) ? Promise.all(children) : workload.rest(random, 1_000);
  await Promise.all([patience, renew(workload, caller, random, whole)]);
  if (random.chance(0.3)) await renew(workload, caller, random, whole);
  await Promise.all(children);
}

/** What comes back has new tokens: what is presented from then on. */
async function renew(workload: Workload, caller: Caller, random: Random, lease: Held): Promise<void> {
  await workload.rest(random, 500);
  const renewed = await caller.renew(workload.somewhere(random), lease);
  if (renewed?.outcome === 'lease') workload.present({ lease: renewed.lease, credentials: [] });
}

async function child(workload: Workload, caller: Caller, random: Random, whole: Held, depth: number): Promise<void> {
  const runId = await workload.newRun(caller, random, whole.runId, depth);
  const entries = partOf(random, whole.entries);
  if (runId === null || entries.length === 0) return;
  const asked = { runId, key: randomUUID(), entries, delegatedFrom: whole.leaseId };
  const more = { ttlMs: random.between(1_000, 9_000), waitMs: random.chance(0.3) ? 2_000 : 0 };
  for (let tries = 0; workload.going && tries < 3; tries += 1) {
    const replica = workload.somewhere(random);
    const asking = caller.acquire(replica, asked, more);
    workload.world.delegates(replica);
    const told = await asking;
    if (told?.outcome === 'refusal') return;
    if (told?.outcome === 'lease') {
      workload.present({ lease: told.lease, credentials: told.tokens });
      if (depth < DEEPEST && random.chance(0.3)) await delegate(workload, caller, random, told.lease, depth + 1);
      for (let steps = random.below(3); workload.going && steps > 0; steps -= 1)
        await renew(workload, caller, random, told.lease);
      return end(workload, caller, random, told.lease);
    }
    await workload.rest(random, 300);
  }
}

/** Given back, or with its whole run; or forgotten, and time ends it. */
async function end(workload: Workload, caller: Caller, random: Random, { runId, leaseId }: Held): Promise<void> {
  const replica = workload.somewhere(random);
  const luck = random.next();
  if (luck < 0.15) return;
  const ending = luck < 0.35 ? caller.stopRun(replica, runId) : caller.release(replica, runId, { leaseId });
  workload.world.delegates(replica);
  await ending;
}

/** Some of it: of a subtree also what is below. */
function partOf(random: Random, entries: readonly SeenEntry[]): AskedEntry[] {
  const writes = entries.filter(({ access, actions }) => access === 'write' && actions.length > 0);
  return random
    .shuffled(writes)
    .slice(0, 1 + random.below(2))
    .map(({ resource, access, scope, actions }) => {
      const below = scope === 'subtree' && random.chance(0.7);
      return below
        ? { resource: `${resource}/left`, access, scope: 'exact', actions }
        : { resource, access, scope, actions };
    });
}
