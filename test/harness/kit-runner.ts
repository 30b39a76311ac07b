import { randomUUID } from 'node:crypto';
import type { WritClient } from '../../src/clients/common/connect.js';
import { acquire } from '../../src/clients/runner/acquire.js';
import type { Lease } from '../../src/clients/runner/lease.js';
import type { Caller } from './calls.js';
import type { Random } from './random.js';
import { releaseTold, seenEntry } from './seen.js';
import type { Workload } from './workload.js';

/** Between two looks at what the kit says of its lease. */
const LOOK_EVERY_MS = 100;

/** A run that leaves it all to the runner kit: the wait, renewals, and when to stop. */
export async function kitRunner(workload: Workload, client: WritClient, caller: Caller, random: Random): Promise<void> {
  const runId = await workload.newRun(caller, random);
  if (runId === null) return;
  for (let rounds = 1 + random.below(4); workload.going && rounds > 0; rounds -= 1)
    await hold(workload, client, caller.name, random, runId);
}

async function hold(workload: Workload, client: WritClient, by: string, random: Random, runId: string): Promise<void> {
  const { recorder } = workload.world;
  const asked = { runId, key: randomUUID(), entries: workload.writeSet(random) };
  let mayRenew = true;
  let lease: Lease | undefined;
  await recorder.call('held', by, 'kit', asked, async () => {
    lease = await acquire(client, {
      runId,
      resources: asked.entries,
      idempotencyKey: asked.key,
      ttlMs: workload.ttlMs(random, asked.entries),
      waitMs: random.chance(0.5) ? random.between(500, 5_000) : 0,
      mayRenew: () => mayRenew,
    });
    return { leaseId: lease.id, entries: lease.entries.map(seenEntry) };
  });
  if (lease === undefined) return workload.rest(random, 300);
  const leaseId = lease.id;
  const look = async (): Promise<boolean> => {
    const holds = (lease?.remainingMs ?? 0) > 0;
    recorder.saw('holds', by, 'kit', { leaseId, runId }, { holds });
    await workload.rest(random, LOOK_EVERY_MS);
    return holds && workload.going;
  };
  for (let looks = random.below(60); looks > 0 && (await look()); looks -= 1)
    if (looks % 10 === 0)
      workload.present({ lease: { leaseId, runId, entries: lease.entries.map(seenEntry) }, credentials: [] });
  // Some hang, and nobody renews for them: time ends it.
  mayRenew = random.chance(0.7);
  while (!mayRenew && (await look()));
  const release = { runId, leaseId, key: '' };
  await recorder.call('release', by, 'kit', release, async () => releaseTold(await (lease as Lease).release()));
}
