import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { connectWrit } from '../../../src/clients/common/connect.js';
import { acquire } from '../../../src/clients/runner/acquire.js';
import type { Lease } from '../../../src/clients/runner/lease.js';
import type { Caller } from '../calls.js';
import type { Replica } from '../cluster.js';
import type { AskedEntry, SeenLease } from '../history.js';
import type { Presentable } from '../seen.js';
import type { Stage } from '../stage.js';
import type { World } from '../world.js';

export function setEntry(resource: string, scope: AskedEntry['scope'] = 'exact'): AskedEntry {
  return { resource, access: 'write', scope, actions: ['set'] };
}

/** A run; asked for again while a connection comes back. */
export async function newRun(caller: Caller, replica: Replica, authoritySeconds = 600): Promise<string> {
  for (const until = performance.now() + 15_000; ; await pause(50)) {
    const runId = await caller.createRun(replica, authoritySeconds);
    if (runId !== null) return runId;
    if (performance.now() > until) throw new Error(`replica ${replica.name} makes no run`);
  }
}

export interface Held {
  readonly runId: string;
  readonly key: string;
  readonly lease: SeenLease;
  readonly credentials: readonly Presentable[];
}

/** A lease, for a run of its own unless one is given; asked for again by its key while nobody answers. */
export async function hold(
  caller: Caller,
  replica: Replica,
  entries: readonly AskedEntry[],
  more: {
    readonly runId?: string;
    readonly ttlMs?: number;
    readonly waitMs?: number;
    readonly audiences?: readonly string[];
  } = {},
): Promise<Held> {
  const runId = more.runId ?? (await newRun(caller, replica));
  const key = randomUUID();
  for (const until = performance.now() + 15_000; ; ) {
    const told = await caller.acquire(replica, { runId, key, entries }, more);
    if (told?.outcome === 'lease') return { runId, key, lease: told.lease, credentials: told.tokens };
    if (told === null && performance.now() < until) await pause(50);
    else if (told?.outcome !== 'waiting') throw new Error(`not granted: ${JSON.stringify(told)}`);
  }
}

/** The first entry of a lease, as its run presents it. */
export function writeOf({ entries }: SeenLease, action = 'set') {
  const [entry] = entries;
  return { resource: entry?.resource ?? '', action, token: entry?.token ?? 0, observedVersion: null };
}

/** Whether a target would have let the first entry's write in, and why not; null: nobody answered. */
export async function checkOf(caller: Caller, replica: Replica, lease: SeenLease): Promise<string | null> {
  const told = await caller.check(replica, lease, [writeOf(lease)]);
  return told?.results[0]?.reason ?? null;
}

/** An answer: asked for again while there is none, as that says nothing. */
export function surely<T>(world: World, ask: () => Promise<T | null>): Promise<T | null> {
  return world.until(ask, (told) => told !== null);
}

/** A lease of the runner kit, through the network of these replicas. */
export async function ofTheKit(
  stage: Stage,
  world: World,
  replicas: readonly [Replica, ...Replica[]],
  resource: string,
  ttlMs: number,
) {
  const { tokens } = world.cluster;
  const client = connectWrit({ endpoint: replicas.map(({ network }) => network.endpoint), token: tokens.runner });
  stage.add('runner kit', async () => client.close());
  const runId = await newRun(world.caller('runner'), replicas[0]);
  const events: string[] = [];
  const lease: Lease = await acquire(client, {
    runId,
    resources: [{ resource, actions: ['set'] }],
    ttlMs,
    onJeopardy: () => events.push('jeopardy'),
    onSafe: () => events.push('safe'),
    onLost: () => events.push('lost'),
  });
  return { lease, events };
}
