import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import type { CallContext, ReportWriteInput } from '../../src/services/api.js';
import {
  acquireInput,
  as,
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

// Tracked writes over two replicas and restarts: what is let in is known everywhere, until its outcome is.

const MAP = `
version: 1
kinds:
  - pattern: "rel/{name}"
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } }
  - pattern: "item/{name}"
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } }
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

let serial = 0;
const freshName = (): string => `rel/r${++serial}`;

/** A target's check of everything that the lease may write. */
async function check(replica: TestReplica, lease: Lease, requestId: string, context = as('target')) {
  const { value } = await replica.api.checkFence(context, {
    leaseId: lease.leaseId,
    presenterRunId: lease.runId,
    writes: lease.entries.map(({ resource, token }) => ({ resource, action: 'set', token, observedVersion: null })),
    requestId,
  });
  return value;
}

/** A lease with its first write let in. */
async function letIn(replica: TestReplica, resource: string, more: { forSeconds?: number; ttl?: number } = {}) {
  const runId = await createRun(replica.api, more.forSeconds === undefined ? {} : { forSeconds: more.forSeconds });
  const lease = await granted(replica.api, runId, [write(resource, 'set')], { ttl: more.ttl ?? null });
  const requestId = freshKey();
  const { allowed, admissionIds } = await check(replica, lease, requestId);
  expect(allowed).toBe(true);
  return { runId, lease, requestId, admissionId: admissionIds?.[0] ?? '' };
}

type Report = ReportWriteInput['writes'][number];

async function report(replica: TestReplica, write: Partial<Report>, more: Partial<ReportWriteInput> = {}) {
  const { value } = await replica.api.reportWrite(as('target'), {
    leaseId: '',
    credential: '',
    requestId: '',
    detail: '',
    writes: [
      {
        admissionId: '',
        resource: '',
        action: '',
        result: 'succeeded',
        observedVersion: null,
        newVersion: null,
        changedFields: [],
        ...write,
      },
    ],
    ...more,
  });
  return value[0];
}

const inDoubt = async (replica: TestReplica, context: CallContext = as('operator'), includeOpen = false) =>
  (
    await replica.api.listInDoubt(context, {
      runId: '',
      resource: '',
      includeOpen,
      page: { size: 1_000, token: '' },
    })
  ).value.items.map(({ admissionId }) => admissionId);

const runOn = async (replica: TestReplica, runId: string) =>
  (await replica.api.getRun(as('operator'), { runId })).value;

async function refusalOn(replica: TestReplica, resource: string) {
  const input = acquireInput(await createRun(replica.api), [write(resource, 'set')]);
  const { value } = await replica.api.acquireWriteSet(as('runner'), input);
  return value.kind === 'refusal' ? value.refusal.kind : value.kind;
}

test('a check of a tracked action is in the log before it is answered, and once however often it is repeated', async () => {
  const resource = freshName();
  const { lease, requestId, admissionId, runId } = await letIn(a, resource);
  const events = await a.store.listEvents('default', { requestId, limit: 10 });
  expect(events.map(({ kind }) => kind)).toEqual(['writes_admitted']);
  const again = await Promise.all([check(a, lease, requestId), check(b, lease, requestId), check(b, lease, requestId)]);
  for (const { admissionIds } of again) expect(admissionIds).toEqual([admissionId]);
  expect(await a.store.listEvents('default', { requestId, limit: 10 })).toHaveLength(1);
  expect((await runOn(b, runId)).openWrites.map((open) => open.admissionId)).toEqual([admissionId]);
  await expect(check(a, lease, '')).rejects.toMatchObject({ reason: 'INVALID_ARGUMENT' });
});

test('many repetitions of one check at once, on both replicas, leave one admission', async () => {
  const runId = await createRun(a.api);
  const lease = await granted(a.api, runId, [write(freshName(), 'set')]);
  const requestId = freshKey();
  const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => check(i % 2 === 0 ? a : b, lease, requestId)));
  expect(new Set(answers.map(({ admissionIds }) => admissionIds?.[0])).size).toBe(1);
  expect((await runOn(a, runId)).openWrites).toHaveLength(1);
});

test('an untracked check leaves no event, and a check with both kinds of writes leaves the tracked one', async () => {
  const runId = await createRun(a.api);
  const lease = await granted(a.api, runId, [write(`item/${freshKey()}`, 'set'), write(freshName(), 'set')]);
  const requestId = freshKey();
  const { admissionIds } = await check(a, lease, requestId);
  expect(admissionIds?.map((id) => id !== '')).toEqual([false, true]);
  const plain = await granted(a.api, runId, [write(`item/${freshKey()}`, 'set')]);
  const plainCheck = freshKey();
  expect((await check(a, plain, plainCheck)).admissionIds).toBeUndefined();
  expect(await a.store.listEvents('default', { requestId: plainCheck, limit: 10 })).toEqual([]);
});

test('a denied check lets nothing in', async () => {
  const { lease } = await letIn(a, freshName());
  await a.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'a test' });
  const requestId = freshKey();
  expect(await check(b, lease, requestId)).toMatchObject({ allowed: false, results: [{ reason: 'revoked' }] });
  const events = await eventually(
    () => b.store.listEvents('default', { requestId, limit: 10 }),
    (seen) => seen.length > 0,
  );
  expect(events.map(({ kind }) => kind)).toEqual(['checks_denied']);
});

test('in doubt on every replica and after a restart; the report of the other replica grants who waits', async () => {
  const resource = freshName();
  const { lease, admissionId } = await letIn(a, resource);
  const { value } = await b.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'a test' });
  expect(value.openWrites.map((open) => open.admissionId)).toEqual([admissionId]);
  const fresh = await startReplica({ url: pair.database.url });
  try {
    for (const replica of [a, b, fresh]) {
      expect(await refusalOn(replica, resource)).toBe('in_doubt');
      expect(await inDoubt(replica)).toContain(admissionId);
    }
    const input = acquireInput(await createRun(fresh.api), [write(resource, 'set')], { wait: 20 * SECOND });
    const waiting = fresh.api.acquireWriteSet(as('runner'), input);
    await eventually(
      () => a.api.listLeases(as('operator'), query(resource)),
      (seen) => seen.value.items.length === 1,
    );
    expect(await report(b, { admissionId, newVersion: '2' })).toBe('closed');
    expect(leaseOf((await waiting).value).state).toBe('active');
    expect(await inDoubt(a)).not.toContain(admissionId);
  } finally {
    await fresh.stop();
  }
});

const query = (resource: string) => ({
  runId: '',
  resource,
  states: ['waiting' as const],
  lockDelayed: false,
  page: { size: 10, token: '' },
});

test('T5: authority ends while a remote operation is pending: nothing new is let in, what is unresolved stays visible', async () => {
  const { lease, runId, requestId } = await letIn(a, freshName(), { forSeconds: 5, ttl: 60 * SECOND });
  const ended = await eventually(
    () => runOn(b, runId),
    ({ run }) => run.state === 'stopping',
  );
  expect(ended).toMatchObject({ mayWrite: false, liveLeases: 0, openWrites: [{ requestId }] });
  const late = await check(b, lease, freshKey());
  expect(late.allowed).toBe(false);
  const input = acquireInput(runId, [write(freshName(), 'set')]);
  expect((await a.api.acquireWriteSet(as('runner'), input)).value).toMatchObject({ refusal: { kind: 'run_ended' } });
  // The worker restarts, the coordinator too: it is still there, and in the list of what is under way.
  const fresh = await startReplica({ url: pair.database.url });
  try {
    const listed = await fresh.api.listRuns(as('auditor'), { states: ['stopping'], page: { size: 100, token: '' } });
    expect(listed.value.items.find(({ run }) => run.runId === runId)?.openWrites).toHaveLength(1);
    const told = { resource: lease.entries[0]?.resource ?? '', action: 'set' };
    const by = { leaseId: lease.leaseId, requestId };
    expect(await report(fresh, told, by)).toBe('closed');
    expect((await runOn(a, runId)).run).toMatchObject({ state: 'expired', endsAs: null });
    // Repeated, also where nobody remembers it any more.
    const another = await startReplica({ url: pair.database.url });
    expect(await report(another, told, by)).toBe('already_known');
    await another.stop();
  } finally {
    await fresh.stop();
  }
});

test('StopRun answers stopping with what is open, until an operator settles it', async () => {
  const stopping = async () =>
    Number(/^writ_runs_stopping\{namespace="default"\} (\d+)$/m.exec((await a.metrics.render()).text)?.[1]);
  const before = await stopping();
  const { runId, admissionId } = await letIn(a, freshName());
  const stopped = await a.api.stopRun(as('operator'), { runId, reason: 'enough' });
  expect(stopped.value.run).toMatchObject({
    run: { state: 'stopping', endsAs: 'stopped' },
    openWrites: [{ admissionId }],
  });
  expect(await stopping()).toBe(before + 1);
  const settle = (happened: boolean) =>
    b.api.settleInDoubt(as('operator', { name: 'olga' }), {
      admissionId,
      happened,
      newVersion: null,
      reason: 'asked it',
    });
  expect((await settle(false)).value).toMatchObject({ settledNow: true, runId, stillOpen: [] });
  expect((await settle(false)).value.settledNow).toBe(false);
  await expect(settle(true)).rejects.toMatchObject({ reason: 'OUTCOME_KNOWN' });
  expect((await runOn(a, runId)).run.state).toBe('stopped');
  expect(await stopping()).toBe(before);
  const [event] = await a.store.listEvents('default', { runId, kinds: ['doubt_settled'], limit: 10 });
  expect(event?.actor).toBe('olga');
  expect(event && decodeEvent(event).body).toMatchObject({ happened: false, reason: 'asked it' });
});

test('a repeated stop of many answers as the first did, with the runs as they are now', async () => {
  const { runId, admissionId } = await letIn(a, freshName());
  const request = { principal: '', resource: '', all: true, reason: 'all', idempotencyKey: freshKey() };
  const states = async () =>
    (await b.api.stopRuns(as('operator'), request)).value.runs.find(({ run }) => run.runId === runId)?.run.state;
  expect(await states()).toBe('stopping');
  await report(a, { admissionId });
  expect(await states()).toBe('stopped');
});

test('who sees what is open: the target that was let in, the runner whose run it is, and nobody else', async () => {
  const resource = freshName();
  const runner = as('runner', { name: 'runner:one' });
  const target = as('target', { name: 'svc:one' });
  const lease = await granted(a.api, await createRun(a.api, { context: runner }), [write(resource, 'set')], {}, runner);
  const { admissionIds } = await check(a, lease, freshKey(), target);
  const [admissionId = ''] = admissionIds ?? [];
  for (const [context, sees] of [
    [target, true],
    [runner, true],
    [as('auditor'), true],
    [as('target', { name: 'svc:two' }), false],
    [as('runner', { name: 'runner:two' }), false],
  ] as const)
    expect((await inDoubt(a, context, true)).includes(admissionId), context.principal.name).toBe(sees);
  expect(await inDoubt(a)).not.toContain(admissionId);
  await expect(report(a, { admissionId })).rejects.toMatchObject({ reason: 'WRONG_TARGET' });
});

test('a report of an untracked write is an outcome in the log', async () => {
  const runId = await createRun(a.api);
  const resource = `item/${freshKey()}`;
  const lease = await granted(a.api, runId, [write(resource, 'set')]);
  const requestId = freshKey();
  const told = { resource, action: 'set', newVersion: '9', changedFields: ['image'] };
  expect(await report(a, told, { leaseId: lease.leaseId, requestId })).toBe('recorded');
  const [event] = await b.store.listEvents('default', { requestId, limit: 10 });
  expect(event).toMatchObject({ kind: 'writes_reported', actor: 'target', runId, resources: [resource] });
});

test('a run that presents a credential: let in and reported by it, also when it counts for nothing any more', async () => {
  const resource = freshName();
  const lease = await granted(a.api, await createRun(a.api), [write(resource, 'set')]);
  const issued = await a.api.issueCredential(as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: 'target',
    confirmation: null,
    requestId: '',
  });
  const credential = issued.value.credential?.token ?? '';
  const requestId = freshKey();
  const asked = { resource, action: 'set', token: 0, observedVersion: null };
  const question = { leaseId: '', credential, presenterRunId: '', writes: [asked], requestId };
  const { value } = await b.api.checkFence(as('target'), question);
  expect(value.allowed).toBe(true);
  const [open] = (await runOn(a, lease.runId)).openWrites;
  expect(open).toMatchObject({ admissionId: value.admissionIds?.[0], token: lease.entries[0]?.token });
  await a.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'a test' });
  const told = { resource, action: 'set' };
  await expect(report(a, told, { credential: 'none', requestId })).rejects.toMatchObject({
    reason: 'INVALID_ARGUMENT',
  });
  expect(await report(a, told, { credential, requestId })).toBe('closed');
});

test('R4, F17: racing admissions and revocations over two replicas: what was let in is in doubt, the rest was denied', async () => {
  for (let round = 0; round < 20; round += 1) {
    const resource = freshName();
    const lease = await granted(a.api, await createRun(a.api), [write(resource, 'set')]);
    let revoked = false;
    const late: boolean[] = [];
    const checks = Array.from({ length: 8 }, async (_, i) => {
      const began = revoked;
      const { allowed, admissionIds } = await check(i % 2 === 0 ? a : b, lease, freshKey());
      if (began) late.push(allowed);
      return allowed ? (admissionIds ?? []) : [];
    });
    const { value } = await (round % 2 === 0 ? a : b).api.revokeLease(as('operator'), {
      leaseId: lease.leaseId,
      reason: 'a test',
    });
    revoked = true;
    late.push((await check(b, lease, freshKey())).allowed);
    const letIn = (await Promise.all(checks)).flat();
    expect(late).not.toContain(true);
    // Whatever was answered as allowed was let in before the end, and the end knew of it.
    expect(new Set(value.openWrites.map(({ admissionId }) => admissionId))).toEqual(new Set(letIn));
    expect(await refusalOn(b, resource)).toBe(letIn.length > 0 ? 'in_doubt' : 'lease');
    await Promise.all(letIn.map((admissionId) => report(a, { admissionId, result: 'failed' })));
    const still = new Set(await inDoubt(b));
    expect(letIn.filter((admissionId) => still.has(admissionId))).toEqual([]);
  }
});
