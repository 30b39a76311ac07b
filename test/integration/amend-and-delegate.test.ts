import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { durationMs, toDuration, toTimestamp } from '../../src/clients/common/time.js';
import { acquire } from '../../src/clients/runner/acquire.js';
import { RefusedError } from '../../src/clients/runner/errors.js';
import type { Lease as Held } from '../../src/clients/runner/lease.js';
import { type RequestedResource, wireChange, wireEntries } from '../../src/clients/runner/write-set.js';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';
import { EndReason, type Lease, LeaseState, RefusalKind } from '../../src/gen/writ/v1/types.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

// AmendWriteSet and delegation over gRPC, on two replicas of one installation, and on a third that starts later.

const MAP = `
version: 1
profiles: { any: { ttl: 60s, max_ttl: 10m, actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } } } }
kinds:
  - { pattern: "item/{name}", extends: any }
  - { pattern: "loc/{name}", extends: any, validation: local }
`;

let database: TestDatabase;
let a: ServedReplica;
let b: ServedReplica;
let runnerA: WritClient;
let runnerB: WritClient;

beforeAll(async () => {
  database = await createTestDatabase();
  a = await startServedReplica(database);
  b = await startServedReplica(database);
  [runnerA, runnerB] = [a.client('runner'), b.client('runner')];
  await a.client('admin').conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'a test' });
});

afterAll(async () => {
  await a?.stop();
  await b?.stop();
  await database?.drop();
});

const AUTHORITY_ENDS = toTimestamp(Date.now() * 1_000 + 3_600_000_000);
let serial = 0;
const fresh = (prefix: string): string => `${prefix}/${++serial}`;
const set = (...resources: readonly string[]): RequestedResource[] =>
  resources.map((resource) => ({ resource, actions: ['set'] }));

async function newRun(parentRunId = ''): Promise<string> {
  const { run } = await runnerA.run.createRun({
    purpose: 'a test',
    parentRunId,
    allowed: [{ pattern: '{all...}', actions: ['*'] }],
    authorityEndsAt: AUTHORITY_ENDS,
  });
  return run?.runId ?? '';
}

async function take(client: WritClient, runId: string, resources: readonly string[], ttlMs = 300_000): Promise<Lease> {
  const request = { runId, entries: wireEntries(set(...resources)), ttl: toDuration(ttlMs) };
  const { outcome } = await client.lease.acquireWriteSet(request);
  if (outcome?.$case !== 'lease') throw new Error(`no lease: ${JSON.stringify(outcome?.value)}`);
  return outcome.value;
}

function amend(client: WritClient, { runId, leaseId }: Lease, change: Parameters<typeof wireChange>[0]) {
  return client.lease.amendWriteSet({ runId, leaseId, ...wireChange(change) });
}

async function amended(client: WritClient, lease: Lease, change: Parameters<typeof wireChange>[0]): Promise<Lease> {
  const { outcome } = await amend(client, lease, change);
  if (outcome?.$case !== 'lease') throw new Error(`not amended: ${JSON.stringify(outcome?.value)}`);
  return outcome.value;
}

const tokenOn = (lease: Pick<Lease, 'entries'>, resource: string): bigint =>
  lease.entries.find((entry) => entry.resource === resource)?.fencingToken ?? 0n;

async function reasonOf(replica: ServedReplica, { leaseId, runId }: Lease, resource: string, token: bigint) {
  const { results } = await replica.client('target').fence.checkFence({
    leaseId,
    presenterRunId: runId,
    writes: [{ resource, action: 'set', fencingToken: token }],
  });
  return FenceReason[results[0]?.reason ?? 0]?.replace('FENCE_REASON_', '');
}

test('what one replica amends, every other decides by at once (P2, P3, P4)', async () => {
  const [kept, gone, added] = [fresh('item'), fresh('item'), fresh('item')];
  const lease = await take(runnerA, await newRun(), [kept, gone]);
  const after = await amended(runnerB, lease, { add: set(added), remove: [gone] });
  expect(after.generation).toBe(2);
  expect(after.expiresAt).toEqual(lease.expiresAt);
  expect(tokenOn(after, kept)).toBe(tokenOn(lease, kept));
  expect(tokenOn(after, added) > tokenOn(lease, kept)).toBe(true);
  expect(await reasonOf(a, lease, gone, tokenOn(lease, gone))).toBe('NOT_COVERED');
  expect(await reasonOf(a, lease, kept, tokenOn(lease, kept))).toBe('OK');
  expect(await reasonOf(a, lease, added, tokenOn(after, added))).toBe('OK');
  expect(await reasonOf(a, lease, added, tokenOn(lease, kept))).toBe('STALE_TOKEN');
  const other = await take(runnerA, await newRun(), [gone]);
  expect(tokenOn(other, gone) > tokenOn(lease, gone)).toBe(true);
  // A renewal brings what it came to.
  const { results } = await runnerA.lease.renewLeases({ runId: lease.runId, renewals: [{ leaseId: lease.leaseId }] });
  const outcome = results[0]?.outcome;
  expect(outcome?.$case === 'lease' ? outcome.value.entries : []).toEqual(after.entries);
});

test('one key is one amendment, on whichever replicas at once, and after a restart (P6)', async () => {
  const runId = await newRun();
  for (let round = 0; round < 8; round += 1) {
    const [kept, gone, added] = [fresh('item'), fresh('loc'), fresh('item')];
    const lease = await take(runnerA, runId, [kept, gone]);
    const change = { add: set(added), remove: [gone], idempotencyKey: randomUUID() };
    const answers = await Promise.all([amend(runnerA, lease, change), amend(runnerB, lease, change)]);
    for (const { outcome } of answers) {
      expect(outcome?.$case === 'lease' ? outcome.value.generation : outcome).toBe(2);
      expect(outcome?.$case === 'lease' && tokenOn(outcome.value, added) > tokenOn(lease, kept)).toBe(true);
    }
    expect(answers[0].effectiveAt).toEqual(answers[1].effectiveAt);
    const other = { ...change, remove: [] };
    await expect(amend(runnerB, lease, other)).rejects.toMatchObject({ reason: 'IDEMPOTENCY_KEY_REUSED' });
    if (round > 0) continue;
    const later = await startServedReplica(database);
    try {
      const again = await amend(later.client('runner'), lease, change);
      expect(again.effectiveAt).toEqual(answers[0].effectiveAt);
      expect(again.outcome).toMatchObject({ value: { generation: 2, leaseId: lease.leaseId } });
      // What was given up of a local kind is closed there too, and by the same time.
      const { outcome } = await later
        .client('runner')
        .lease.acquireWriteSet({ runId: await newRun(), entries: wireEntries(set(gone)) });
      expect(outcome).toMatchObject({ value: { kind: RefusalKind.REFUSAL_KIND_LOCK_DELAY } });
    } finally {
      await later.stop();
    }
  }
});

test('an amendment and an end at the same moment: one comes first, and what ended stays ended (F7, F14)', async () => {
  for (let round = 0; round < 8; round += 1) {
    const [kept, added] = [fresh('item'), fresh('item')];
    const lease = await take(runnerA, await newRun(), [kept]);
    const { runId, leaseId } = lease;
    const end =
      round % 2 === 0
        ? runnerB.lease.releaseLease({ runId, lease: { $case: 'leaseId', value: leaseId } })
        : b.client('operator').run.stopRun({ runId, reason: 'a test' });
    const [answer] = await Promise.all([amend(runnerA, lease, { add: set(added) }), end]);
    const { outcome } = answer;
    if (outcome?.$case === 'refusal') expect(outcome.value.kind).toBe(RefusalKind.REFUSAL_KIND_ENDED);
    const now = (await runnerA.lease.getLease({ leaseId })).lease;
    expect(now?.state).toBe(LeaseState.LEASE_STATE_ENDED);
    expect(now?.endReason).not.toBe(EndReason.END_REASON_EXPIRED);
    for (const resource of [kept, added])
      expect(await reasonOf(a, lease, resource, tokenOn(now ?? lease, resource))).not.toBe('OK');
    await take(runnerB, await newRun(), [kept, added]);
  }
});

test('a credential of before counts for what is still covered, and for nothing that was given up (P10)', async () => {
  const [kept, gone] = [fresh('item'), fresh('item')];
  const lease = await take(runnerA, await newRun(), [kept, gone]);
  const { outcome } = await runnerA.credential.issueCredential({
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: 'target',
  });
  const credential = outcome?.$case === 'credential' ? outcome.value.token : '';
  await amended(runnerB, lease, { remove: [gone] });
  const check = async (resource: string) => {
    const { results } = await a
      .client('target')
      .fence.checkFence({ credential, writes: [{ resource, action: 'set' }] });
    return FenceReason[results[0]?.reason ?? 0];
  };
  expect(await check(kept)).toBe('FENCE_REASON_OK');
  expect(await check(gone)).toBe('FENCE_REASON_NOT_COVERED');
});

test('the runner kit amends: tokens and credentials are the new ones, a refusal leaves it as it was', async () => {
  const [kept, added, taken] = [fresh('item'), fresh('item'), fresh('item')];
  await take(runnerB, await newRun(), [taken]);
  const sent: Headers[] = [];
  const answer = async (_: unknown, init?: RequestInit) => {
    sent.push(new Headers(init?.headers));
    return new Response();
  };
  const lease: Held = await acquire(runnerA, {
    runId: await newRun(),
    resources: set(kept),
    ttlMs: 60_000,
    targets: [{ audience: 'target', origins: ['https://target.example'], fetch: answer as typeof fetch }],
  });
  const present = (resource: string) =>
    lease.fetch('https://target.example/x', { method: 'POST', writes: [resource] }).then(() => sent.at(-1));
  const before = (await present(kept))?.get('authorization');
  await expect(present(added)).rejects.toThrow('does not cover');
  const refused = await lease.amend({ add: set(added, taken) }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(RefusedError);
  expect((refused as RefusedError).refusal.grantable.map(({ resource }) => resource)).toEqual([added]);
  expect(lease.entries).toHaveLength(1);
  const { effectiveAt } = await lease.amend({ add: set(added) });
  expect(effectiveAt).toBeDefined();
  expect(lease.token(added)).toBeDefined();
  const after = (await present(added))?.get('authorization');
  expect(after).not.toBe(before);
  const { results } = await b.client('target').fence.checkFence({
    credential: after?.replace('Bearer ', '') ?? '',
    writes: [{ resource: added, action: 'set' }],
  });
  expect(results[0]?.allowed).toBe(true);
  expect(durationMs(toDuration(lease.remainingMs))).toBeGreaterThan(0);
  await lease.release();
});

async function takePart(client: WritClient, whole: Lease, runId: string, resource: string) {
  const request = { runId, entries: wireEntries(set(resource)), delegatedFrom: whole.leaseId };
  return (await client.lease.acquireWriteSet(request)).outcome;
}

test('a child run holds a part, on whichever replica, and it comes back with the end (P1, P2, P3)', async () => {
  const [shared, own] = [fresh('item'), fresh('item')];
  const whole = await take(runnerA, await newRun(), [shared, own]);
  const outcome = await takePart(runnerB, whole, await newRun(whole.runId), shared);
  if (outcome?.$case !== 'lease') throw new Error(`no part: ${JSON.stringify(outcome?.value)}`);
  const part = outcome.value;
  expect(part.delegatedFrom).toBe(whole.leaseId);
  const later = await startServedReplica(database);
  try {
    for (const replica of [a, b, later]) {
      expect(await reasonOf(replica, whole, shared, tokenOn(whole, shared))).toBe('SUSPENDED');
      expect(await reasonOf(replica, whole, own, tokenOn(whole, own))).toBe('OK');
      expect(await reasonOf(replica, part, shared, tokenOn(part, shared))).toBe('OK');
    }
    const { runId, leaseId } = part;
    await later.client('runner').lease.releaseLease({ runId, lease: { $case: 'leaseId', value: leaseId } });
  } finally {
    await later.stop();
  }
  const { results } = await runnerA.lease.renewLeases({ runId: whole.runId, renewals: [{ leaseId: whole.leaseId }] });
  const renewed = results[0]?.outcome;
  if (renewed?.$case !== 'lease') throw new Error('not renewed');
  expect(tokenOn(renewed.value, shared) > tokenOn(part, shared)).toBe(true);
  expect(renewed.value.entries.some(({ suspended }) => suspended)).toBe(false);
  expect(await reasonOf(b, whole, shared, tokenOn(whole, shared))).toBe('STALE_TOKEN');
  expect(await reasonOf(b, whole, shared, tokenOn(renewed.value, shared))).toBe('OK');
});

test('a part that is asked for while the whole ends is held by nobody afterwards (F14)', async () => {
  for (let round = 0; round < 6; round += 1) {
    const resource = fresh('item');
    const whole = await take(runnerA, await newRun(), [resource]);
    const child = await newRun(whole.runId);
    const end =
      round % 2 === 0
        ? runnerB.lease.releaseLease({ runId: whole.runId, lease: { $case: 'leaseId', value: whole.leaseId } })
        : b.client('operator').run.stopRun({ runId: whole.runId, reason: 'a test' });
    const [outcome] = await Promise.all([takePart(runnerA, whole, child, resource), end]);
    if (outcome?.$case === 'lease') {
      const now = (await runnerA.lease.getLease({ leaseId: outcome.value.leaseId })).lease;
      expect(now?.endReason).toBe(EndReason.END_REASON_PARENT_ENDED);
      expect(await reasonOf(a, outcome.value, resource, tokenOn(outcome.value, resource))).toBe('PARENT_ENDED');
    }
    await take(runnerB, await newRun(), [resource]);
  }
});

test('the runner kit of a parent knows no token while a child holds it, and the new one afterwards', async () => {
  const resource = fresh('item');
  const parent = await newRun();
  const whole = await acquire(runnerA, { runId: parent, resources: set(resource), ttlMs: 60_000 });
  const before = whole.token(resource) ?? 0n;
  const runId = await newRun(parent);
  const part = await acquire(runnerB, { runId, resources: set(resource), delegatedFrom: whole.id });
  await whole.refresh();
  expect(whole.token(resource)).toBeUndefined();
  expect((part.token(resource) ?? 0n) > before).toBe(true);
  await part.release();
  await whole.refresh();
  expect((whole.token(resource) ?? 0n) > (part.token(resource) ?? 0n)).toBe(true);
  await whole.release();
});

test('bad input names the field', async () => {
  const lease = await take(runnerA, await newRun(), [fresh('item')]);
  const fields = (change: object) =>
    runnerA.lease
      .amendWriteSet({ runId: lease.runId, leaseId: lease.leaseId, ...change })
      .then(() => [])
      .catch((error: { violations?: { field: string }[] }) => error.violations?.map(({ field }) => field));
  expect(await fields({})).toEqual(['add']);
  expect(await fields({ add: [{ resource: '' }] })).toEqual(['add[0].access']);
  expect(await fields({ remove: [''], downgrade: [{ resource: 'x', access: 1, actions: ['?'] }] })).toEqual([
    'remove[0]',
    'downgrade[0].actions[0]',
  ]);
  expect(await fields({ remove: ['x'], downgrade: [{ resource: 'x', access: 1 }] })).toEqual(['downgrade[0].resource']);
});
