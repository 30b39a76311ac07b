import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  freshKey,
  granted,
  leaseOf,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

// Kinds whose targets do not ask, over two replicas and restarts. A lease of a few seconds bounds its delay.

const MAP = `
version: 1
profiles: { any: { ttl: 60s, max_ttl: 5m, actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } } } }
kinds:
  - { pattern: "loc/{name}", extends: any, validation: local }
  - { pattern: "item/{name}", extends: any }
`;

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

const release = (lease: Lease) =>
  a.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null });

async function refusalOn(replica: TestReplica, resource: string) {
  const input = acquireInput(await createRun(replica.api), [write(resource, 'set')]);
  const { value } = await replica.api.acquireWriteSet(as('runner'), input);
  return value.kind === 'refusal' ? value.refusal : value.kind;
}

test('P3: a released lease is in force at once for checks, and at effective_at for grants, on every replica', async () => {
  const run = await createRun(a.api);
  const [loc, item] = [`loc/${freshKey()}`, `item/${freshKey()}`];
  const lease = await granted(a.api, run, [write(loc, 'set'), write(item, 'set')], { ttl: 300 * SECOND });
  const { value } = await release(lease);
  const endedAt = (await b.api.getLease(as('operator'), { leaseId: lease.leaseId })).value.endedAt as number;
  // 2 s to be in the log, 60 s of life, 5 s of tolerance, 1 s of skew in these tests.
  expect(value).toMatchObject({ outcome: 'released', effectiveAt: endedAt + 68 * SECOND });
  expect((await check(b.api, lease)).reason).toBe('released');
  expect(await refusalOn(b, loc)).toMatchObject({ kind: 'lock_delay', blockers: [{ resource: loc }] });
  leaseOf(
    (await b.api.acquireWriteSet(as('runner'), acquireInput(await createRun(b.api), [write(item, 'set')]))).value,
  );
  const again = await granted(b.api, run, [write(loc, 'set')]);
  expect((await check(a.api, again)).reason).toBe('ok');
});

test('whoever waits is granted when the delay is over, on another replica than the one that ended it', async () => {
  const waited = `loc/${freshKey()}`;
  const lease = await granted(a.api, await createRun(a.api), [write(waited, 'set')], { ttl: 5 * SECOND });
  const { value: ended } = await release(lease);
  expect(ended.effectiveAt).toBe(lease.expiresAt);
  const input = acquireInput(await createRun(b.api), [write(waited, 'set')], { wait: 20 * SECOND });
  const next = leaseOf((await b.api.acquireWriteSet(as('runner'), input)).value);
  expect(next.grantedAt).toBeGreaterThanOrEqual(ended.effectiveAt);
  const old = (await a.api.getLease(as('operator'), { leaseId: lease.leaseId })).value;
  expect(old).toMatchObject({ state: 'ended', lockDelay: { until: ended.effectiveAt, over: true } });
});

test('a restart, and another replica, know what is under lock delay; lists show it when asked', async () => {
  const [kept, brief] = [`loc/${freshKey()}`, `loc/${freshKey()}`];
  const lease = await granted(a.api, await createRun(a.api), [write(kept, 'set')], { ttl: 300 * SECOND });
  const { value } = await a.api.stopRun(as('operator'), { runId: lease.runId, reason: 'a test' });
  const until = value.effectiveAt;
  const fresh = await startReplica({ url: pair.database.url });
  try {
    expect(await refusalOn(fresh, kept)).toMatchObject({
      kind: 'lock_delay',
      blockers: [{ leaseId: lease.leaseId, lockDelayUntil: until }],
    });
    const query = { runId: '', resource: kept, states: [], page: { size: 10, token: '' } };
    const listed = async (lockDelayed: boolean, context = as('operator')) =>
      (await fresh.api.listLeases(context, { ...query, lockDelayed })).value.items.map(({ leaseId }) => leaseId);
    expect(await listed(true)).toEqual([lease.leaseId]);
    expect(await listed(false)).toEqual([]);
    expect(await listed(true, as('runner', { name: 'stranger' }))).toEqual([]);
    const again = await fresh.api.stopRun(as('operator'), { runId: lease.runId, reason: 'again' });
    expect(again.value.effectiveAt).toBe(until);
    // What is over is written by whichever replica sees it first, and then nothing of it is left.
    const short = await granted(a.api, await createRun(a.api), [write(brief, 'set')], { ttl: 3 * SECOND });
    await release(short);
    await eventually(
      async () => (await fresh.api.getLease(as('operator'), { leaseId: short.leaseId })).value.lockDelay,
      (seen) => seen?.over === true,
    );
    expect(await refusalOn(fresh, brief)).toBe('lease');
  } finally {
    await fresh.stop();
  }
});

test('a run that finishes is told when that is in force', async () => {
  const lease = await granted(a.api, await createRun(a.api), [write(`loc/${freshKey()}`, 'set')], { ttl: 20 * SECOND });
  const { value } = await a.api.updateRunState(as('runner'), {
    runId: lease.runId,
    state: 'finished',
    reason: '',
    idempotencyKey: freshKey(),
  });
  expect(value.effectiveAt).toBe(lease.expiresAt);
});
