import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { timestampMicros } from '../../src/clients/common/time.js';
import { createFenceView, type FenceQuestion, type FenceView } from '../../src/clients/target/index.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { seeded } from '../support/seeded.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { newRun, setEntry } from '../support/workload.js';

// P3 of `view` kinds, F2, F17, F21: whatever keeps a view from hearing of an end, it allows nothing after `effective_at`.

const MAP = `
version: 1
kinds:
  - pattern: item/{name...}
    validation: view
    max_view_age: 500ms
    ttl: 60s
    max_ttl: 30m
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } }
`;
/** More of them with WRIT_RACING_ENDS. */
const ENDS = Number(process.env.WRIT_RACING_ENDS ?? 300);
const AT_ONCE = 64;
/** In one turn of the event loop, which has other work, too. */
const LOOKED_AT = 500;
/** None of them expires by itself. */
const LONG = { ttl: { seconds: 1_800n, nanos: 0 } };

interface Held {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly token: bigint;
}

let a: CoordinatorProcess;
let b: CoordinatorProcess;
let proxy: TcpProxy;
let target: WritClient;
let view: FenceView;

beforeAll(async () => {
  a = await startCoordinatorProcess();
  b = await startCoordinatorProcess({ dataDir: a.dataDir });
  await a.client('admin').conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'test' });
  proxy = await TcpProxy.start(a.grpc);
  target = connectWrit({ endpoint: proxy.endpoint, token: a.tokens.target });
  view = createFenceView({ client: target });
  await view.ready();
});

afterAll(async () => {
  view?.close();
  target?.close();
  await proxy?.stop();
  await b?.stop();
  await a?.stop();
});

async function hold(client: WritClient, runId: string, resource: string, more: object = {}): Promise<Held> {
  const request = { runId, entries: [setEntry(resource)], idempotencyKey: randomUUID(), ...more };
  const { outcome } = await client.lease.acquireWriteSet(request);
  if (outcome?.$case !== 'lease') throw new Error(`not granted: ${JSON.stringify(outcome?.$case)}`);
  const { leaseId, entries, grantedAt } = outcome.value;
  expect(grantedAt).toBeDefined();
  return { runId, leaseId, resource, token: entries[0]?.fencingToken ?? 0n };
}

/** Ends it, and says when that is in force: microseconds. */
async function end(client: WritClient, { runId, leaseId }: Held): Promise<number> {
  const { effectiveAt } = await client.lease.releaseLease({ runId, lease: { $case: 'leaseId', value: leaseId } });
  return timestampMicros(effectiveAt) ?? 0;
}

const asked = ({ leaseId, resource, token }: Held): FenceQuestion => ({
  leaseId,
  writes: [{ resource, action: 'set', token }],
});

test('a target that is stopped, and resumes when another run holds the resource, allows nothing', async () => {
  const [runner, other] = [b.client('runner'), b.client('runner')];
  const resource = `item/stopped-${randomUUID()}`;
  const held = await hold(runner, await newRun(runner), resource);
  const child = spawnView(held);
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const report = async (): Promise<{ lastAllowedAt: number; reason: string; afterGaps: string[] }> => {
    const line = once(lines, 'line');
    child.stdin?.write('\n');
    return JSON.parse(String((await line)[0]));
  };
  try {
    await eventually(report, ({ reason }) => reason === 'ok');
    child.kill('SIGSTOP');
    const effectiveAt = await end(runner, held);
    const next = await hold(other, await newRun(other), resource, { wait: { seconds: 20n, nanos: 0 } });
    // The token is the time of the grant.
    expect(Number(next.token)).toBeGreaterThanOrEqual(effectiveAt);
    child.kill('SIGCONT');
    const told = await eventually(report, ({ reason }) => reason === 'released' || reason === 'unknown_lease');
    expect(new Set(told.afterGaps)).toEqual(new Set(['view_too_old']));
    expect(told.lastAllowedAt * 1_000).toBeLessThan(effectiveAt);
  } finally {
    child.kill('SIGCONT');
    child.kill('SIGKILL');
  }
});

function spawnView({ leaseId, resource, token }: Held): ChildProcess {
  const script = fileURLToPath(new URL('../support/view-process.mjs', import.meta.url));
  const question = JSON.stringify({ leaseId, resource, action: 'set', fencingToken: String(token) });
  return spawn(process.execPath, [script, a.grpc, a.tokens.target, question], { stdio: ['pipe', 'pipe', 'inherit'] });
}

test('a view that hears nothing any more decides nothing after its age, and goes on where it was', async () => {
  const runner = b.client('runner');
  const runId = await newRun(runner);
  const held = await hold(runner, runId, `item/deaf-${randomUUID()}`);
  const kept = await hold(runner, runId, `item/kept-${randomUUID()}`);
  const reasonOf = (one: Held) => view.check(asked(one)).reason;
  await eventually(
    () => [reasonOf(held), reasonOf(kept)],
    (reasons) => reasons.every((reason) => reason === 'ok'),
  );
  proxy.hold('up', 'down');
  const endedAt = performance.now();
  await end(runner, held);
  await eventually(
    () => reasonOf(held),
    (reason) => reason === 'view_too_old',
  );
  // Nothing that it had heard before is forgotten.
  expect(view.leases).toBeGreaterThanOrEqual(2);
  expect(performance.now() - endedAt).toBeLessThan(20_000);
  const meanwhile = await hold(runner, runId, `item/meanwhile-${randomUUID()}`);
  proxy.letGo();
  proxy.cut();
  await eventually(
    () => [reasonOf(held), reasonOf(kept), reasonOf(meanwhile)].join(' '),
    (seen) => seen === 'released ok ok',
  );
});

test(
  `${ENDS} ends race the decisions of a view whose stream stutters, over two replicas: none is allowed after it is in force`,
  async () => {
    const runners = [a.client('runner'), b.client('runner')];
    const runnerOf = (index: number) => runners[index % 2] as WritClient;
    const attempt = randomUUID();
    const runIds = await Promise.all(Array.from({ length: Math.ceil(ENDS / 500) }, () => newRun(runnerOf(0))));
    const all = await inTurns(ENDS, (index) =>
      hold(runnerOf(index), runIds[index % runIds.length] as string, `item/race/${attempt}/${index}`, LONG),
    );
    await eventually(
      () => all.filter((held) => !view.check(asked(held)).allowed).length,
      (left) => left === 0,
    );
    const lastAllowed = all.map(() => 0);
    let over = false;
    let next = 0;
    const deciding = (async () => {
      while (!over) {
        for (let count = 0; count < Math.min(ENDS, LOOKED_AT); count += 1) {
          next = (next + 1) % ENDS;
          const at = Date.now() * 1_000;
          if (view.check(asked(all[next] as Held)).allowed) lastAllowed[next] = at;
        }
        await pause(5);
      }
    })();
    const random = seeded();
    const stuttering = (async () => {
      for (let held = false; !over; held = !held) {
        if (held) proxy.hold('down');
        else proxy.letGo();
        await pause(random.between(50, 450));
      }
      proxy.letGo();
    })();
    const effective = await inTurns(ENDS, (index) => end(runnerOf(index + 1), all[index] as Held));
    await eventually(
      () => Date.now() * 1_000,
      (now) => now > Math.max(...effective),
    );
    over = true;
    await Promise.all([deciding, stuttering]);
    const late = effective.filter((at, index) => (lastAllowed[index] as number) > at);
    expect(late, `seed ${random.seed}`).toEqual([]);
    expect(lastAllowed.some((at) => at > 0)).toBe(true);
  },
  60_000 + ENDS * 60,
);

async function inTurns<T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) results[index] = await work(index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}
