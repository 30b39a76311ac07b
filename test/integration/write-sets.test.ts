import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/fault.js';
import { MILLISECOND, SECOND } from '../../src/domain/time.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  freshKey,
  granted,
  leaseOf,
  putMap,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { TIED_MAP } from '../support/tied-map.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: TIED_MAP });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

let next = 0;
const env = (): string => `env-${++next}`;

describe('write sets over two replicas', () => {
  test('P1: of two runs on two replicas that want one resource, exactly one is granted', async () => {
    for (let round = 0; round < 10; round += 1) {
      const resource = `release/${env()}`;
      const [runA, runB] = [await createRun(a.api), await createRun(b.api)];
      const outcomes = await Promise.all([
        a.api.acquireWriteSet(as('runner'), acquireInput(runA, [write(resource, 'promote')])),
        b.api.acquireWriteSet(as('runner'), acquireInput(runB, [write(resource, 'promote')])),
      ]);
      expect(outcomes.map((outcome) => outcome.value.kind).sort()).toEqual(['lease', 'refusal']);
    }
  });

  test('F1, P6: the same key on another replica returns the same lease; another request with it is refused', async () => {
    const run = await createRun(a.api);
    const input = acquireInput(run, [write(`release/${env()}`, 'promote')]);
    const first = leaseOf((await a.api.acquireWriteSet(as('runner'), input)).value);
    const second = leaseOf((await b.api.acquireWriteSet(as('runner'), input)).value);
    expect(second.leaseId).toBe(first.leaseId);
    expect(second.entries[0]?.token).toBe(first.entries[0]?.token);
    await expect(b.api.acquireWriteSet(as('runner'), { ...input, ttl: 5 * SECOND })).rejects.toMatchObject({
      reason: 'IDEMPOTENCY_KEY_REUSED',
    });
  });

  test('P3: once a release on one replica has returned, the other denies', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')]);
    expect(await check(b.api, lease)).toMatchObject({ allowed: true, reason: 'ok' });
    await a.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null });
    expect(await check(b.api, lease)).toMatchObject({ allowed: false, reason: 'released' });
  });

  test('F17: racing checks and revokes over two replicas: nothing is allowed after the revoke returned', async () => {
    const run = await createRun(a.api);
    for (let round = 0; round < 40; round += 1) {
      const lease = await granted(a.api, run, [write(`release/${env()}`, 'promote')]);
      let revoked = false;
      const late: boolean[] = [];
      const checks = Array.from({ length: 6 }, async () => {
        const began = revoked;
        const verdict = await check(b.api, lease);
        if (began) late.push(verdict.allowed);
      });
      await a.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'a test' });
      revoked = true;
      late.push((await check(b.api, lease)).allowed);
      await Promise.all(checks);
      expect(late).not.toContain(true);
    }
  });

  test('P2: tokens of one resource strictly increase over replicas', async () => {
    const resource = `release/${env()}`;
    let last = 0;
    for (let round = 0; round < 10; round += 1) {
      const { api } = round % 2 === 0 ? a : b;
      const run = await createRun(api);
      const lease = await granted(api, run, [write(resource, 'promote')]);
      expect(lease.entries[0]?.token).toBeGreaterThan(last);
      last = lease.entries[0]?.token ?? 0;
      await api.releaseLease(as('runner'), { runId: run, leaseId: lease.leaseId, acquireKey: null });
    }
  });

  test('C3: an implied entry is granted with its rule, and blocks by it', async () => {
    const place = env();
    const lease = await granted(a.api, await createRun(a.api), [write(`deployment/${place}`, 'update')]);
    expect(lease.entries.map((entry) => [entry.resource, entry.impliedBy])).toEqual([
      [`deployment/${place}`, ''],
      [`image-tag/${place}`, 'implies[0]'],
    ]);
    const { value } = await b.api.acquireWriteSet(
      as('runner'),
      acquireInput(await createRun(b.api), [write(`image-tag/${place}`, 'set')]),
    );
    expect(value).toMatchObject({
      kind: 'refusal',
      refusal: { kind: 'held', blockers: [{ rule: 'implies[0]', resource: `image-tag/${place}` }] },
    });
  });

  test('C3: two resources that the map ties conflict per tenant', async () => {
    const tenant = env();
    await granted(a.api, await createRun(a.api), [write(`service-token/${tenant}`, 'rotate')]);
    const other = await createRun(b.api);
    const { value } = await b.api.acquireWriteSet(
      as('runner'),
      acquireInput(other, [write(`integration-config/${tenant}`, 'edit')]),
    );
    expect(value).toMatchObject({ kind: 'refusal', refusal: { kind: 'held', blockers: [{ rule: 'conflicts[0]' }] } });
    await granted(b.api, other, [write(`integration-config/${env()}`, 'edit')]);
  });

  test('P5: an expired lease is denied before any sweep, and stays ended', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')], {
      ttl: 1 * SECOND,
    });
    const verdict = await eventually(
      () => check(b.api, lease),
      (seen) => !seen.allowed,
    );
    expect(verdict.reason).toBe('expired');
    const { value } = await a.api.renewLeases(as('runner'), {
      runId: lease.runId,
      renewals: [{ leaseId: lease.leaseId, ttl: null, progressMarker: null }],
    });
    // By the lower bound of the clock that the other replica has, the end may be a moment away yet.
    expect(value[0]).toMatchObject({ lease: null, refusal: { kind: expect.stringMatching(/^(ended|too_late)$/) } });
  });

  test('F16: a release by another run, in other letter case, or of nothing is NOT_FOUND; twice is already_ended', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')]);
    const other = await createRun(a.api);
    const release = (runId: string, leaseId: string) =>
      b.api.releaseLease(as('runner'), { runId, leaseId, acquireKey: null });
    await expect(release(other, lease.leaseId)).rejects.toMatchObject({ reason: 'LEASE_NOT_FOUND' });
    await expect(release(lease.runId, lease.leaseId.toUpperCase())).rejects.toMatchObject({
      reason: 'LEASE_NOT_FOUND',
    });
    expect((await release(lease.runId, lease.leaseId)).value.outcome).toBe('released');
    expect((await release(lease.runId, lease.leaseId)).value).toMatchObject({
      outcome: 'already_ended',
      endReason: 'released',
    });
  });

  test('P4: a foreign principal cannot use a run, and is not told that it exists', async () => {
    const run = await createRun(a.api);
    const stranger = as('runner', { name: 'stranger' });
    await expect(
      a.api.acquireWriteSet(stranger, acquireInput(run, [write(`release/${env()}`, 'promote')])),
    ).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
    await expect(a.api.getRun(stranger, { runId: run })).rejects.toMatchObject({ reason: 'RUN_NOT_FOUND' });
  });

  test('C10, F15: an undeclared write and an undeclared action are refused like stale ones', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')]);
    expect((await check(a.api, lease, { resource: 'release/elsewhere' })).reason).toBe('not_covered');
    expect((await check(a.api, lease, { action: 'annotate' })).reason).toBe('action_not_allowed');
    expect((await check(a.api, lease, { runId: '0'.repeat(32) })).reason).toBe('wrong_holder');
    expect((await check(a.api, lease, { token: (lease.entries[0]?.token ?? 0) - 1 })).reason).toBe('stale_token');
    expect((await check(a.api, lease, { token: Number.POSITIVE_INFINITY })).reason).toBe('future_token');
  });

  test('C8: optimistic writers stand side by side and must carry the version they read', async () => {
    const resource = `release/${env()}`;
    const one = await granted(a.api, await createRun(a.api), [write(resource, 'annotate')]);
    const two = await granted(b.api, await createRun(b.api), [write(resource, 'annotate')]);
    expect((await check(a.api, one)).reason).toBe('version_required');
    expect((await check(a.api, one, { version: '41' })).allowed).toBe(true);
    expect((await check(b.api, two, { version: '41' })).allowed).toBe(true);
    const { value } = await a.api.acquireWriteSet(
      as('runner'),
      acquireInput(await createRun(a.api), [write(resource, 'promote')]),
    );
    expect(value).toMatchObject({ kind: 'refusal', refusal: { kind: 'held' } });
  });

  test('C14: an observe kind refuses nothing and says what it would have refused', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write('wiki/home', 'edit')]);
    const verdict = await check(a.api, lease, { resource: 'wiki/elsewhere', version: '1' });
    expect(verdict).toMatchObject({ allowed: true, reason: 'not_covered', results: [{ observedOnly: true }] });
  });

  test('C2, C4: what cannot be described, is forbidden, or is outside the contract is refused with what to do', async () => {
    const run = await createRun(a.api, { allowed: [{ pattern: 'release/{env}', actions: ['annotate'] }] });
    const ask = async (resource: string, action: string) =>
      (await a.api.acquireWriteSet(as('runner'), acquireInput(run, [write(resource, action)]))).value;
    expect(await ask('backend work', 'do')).toMatchObject({
      refusal: { kind: 'undescribed', resource: 'backend work' },
    });
    expect(await ask('secret/x', 'read')).toMatchObject({ refusal: { kind: 'forbidden' } });
    expect(await ask(`release/${env()}`, 'promote')).toMatchObject({ refusal: { kind: 'outside_contract' } });
  });

  test('every resource of §4 that is refused is refused with the reason, as bad input or undescribed', async () => {
    const run = await createRun(a.api);
    for (const bad of [
      'release//prod',
      '/release/prod',
      'release/prod/',
      'release/../x',
      'release/ prod',
      'release/\u200bprod',
    ]) {
      const { value } = await a.api.acquireWriteSet(as('runner'), acquireInput(run, [write(bad, 'promote')]));
      expect(value, bad).toMatchObject({ kind: 'refusal', refusal: { kind: 'undescribed' } });
    }
    await expect(
      a.api.acquireWriteSet(as('runner'), acquireInput(run, [write('release/\u0000', 'promote')])),
    ).rejects.toThrow(Fault);
  });

  test('F21, P7: the log of all this is gapless and each event carries the hash of the one before', async () => {
    let revision = 0;
    let hash = '0'.repeat(64);
    for await (const events of b.api.exportEvents(as('auditor'), { afterRevision: 0 })) {
      for (const event of events) {
        expect(event.revision).toBe(revision + 1);
        expect(event.prevHash).toBe(hash);
        ({ revision, hash } = event);
      }
    }
    const checkpoint = await b.api.getCheckpoint(as('auditor'));
    expect(checkpoint.revision).toBeGreaterThanOrEqual(revision);
  });

  test('F7: release races renew; afterwards the lease is ended on every replica', async () => {
    for (let round = 0; round < 20; round += 1) {
      const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')]);
      await Promise.all([
        a.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null }),
        b.api.renewLeases(as('runner'), {
          runId: lease.runId,
          renewals: [{ leaseId: lease.leaseId, ttl: null, progressMarker: 'x' }],
        }),
      ]);
      expect((await check(b.api, lease)).reason).toBe('released');
      expect((await a.api.getLease(as('operator'), { leaseId: lease.leaseId })).value.state).toBe('ended');
    }
  });

  test('P6: a release by the key of an acquire still in flight leaves a tombstone', async () => {
    const run = await createRun(a.api);
    const idempotencyKey = freshKey();
    const released = await a.api.releaseLease(as('runner'), { runId: run, leaseId: null, acquireKey: idempotencyKey });
    expect(released.value.outcome).toBe('nothing_held');
    const { value } = await b.api.acquireWriteSet(
      as('runner'),
      acquireInput(run, [write(`release/${env()}`, 'promote')], { idempotencyKey }),
    );
    expect(value).toMatchObject({ kind: 'refusal', refusal: { kind: 'ended' } });
  });

  test('A1: refused attempts and denied checks are found by their request id', async () => {
    const lease = await granted(a.api, await createRun(a.api), [write(`release/${env()}`, 'promote')]);
    await a.api.checkFence(as('target'), {
      leaseId: lease.leaseId,
      presenterRunId: '',
      writes: [{ resource: 'release/zzz', action: 'promote', token: 1, observedVersion: null }],
      requestId: 'why-me',
    });
    const events = await eventually(
      async () =>
        (
          await b.api.listEvents(as('auditor'), {
            runId: '',
            leaseId: '',
            resource: '',
            kinds: [],
            requestId: 'why-me',
            afterRevision: 0,
            newestFirst: false,
            page: { size: 10, token: '' },
          })
        ).items,
      (items) => items.length > 0,
    );
    expect(events[0]?.kind).toBe('checks_denied');
    expect(events[0]?.body).toContain('not_covered');
  });

  test('many independent requests at once are all granted (C11), and all end', async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, () => createRun(a.api)));
    const leases = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        granted(i % 2 === 0 ? a.api : b.api, runs[i % 20] as string, [write(`release/${env()}`, 'promote')]),
      ),
    );
    expect(new Set(leases.map((lease) => lease.entries[0]?.token)).size).toBe(200);
    await Promise.all(runs.map((runId) => b.api.stopRun(as('operator'), { runId, reason: 'done' })));
    for (const lease of leases.slice(0, 10)) expect((await check(a.api, lease)).reason).toBe('run_stopped');
  });
});

describe('changing the map', () => {
  test('PutConflictMap against another version is ABORTED; a repeated put returns its version', async () => {
    await expect(putMap(a.api, TIED_MAP, 99)).rejects.toMatchObject({ reason: 'MAP_VERSION_CONFLICT' });
    expect(await putMap(b.api, TIED_MAP, 0)).toBe(1);
  });

  test('a change re-expands live leases in the same append, and a conflict among them refuses it', async () => {
    const tenant = env();
    // An earlier attempt may have put the other one.
    const { value: now } = await b.api.getConflictMap(as('admin'), { version: 0 });
    const version = await putMap(b.api, TIED_MAP, now?.version ?? 0);
    await granted(a.api, await createRun(a.api), [write(`image-tag/${tenant}`, 'set')]);
    const second = await granted(b.api, await createRun(b.api), [write(`release/${tenant}`, 'promote')]);
    const tied = TIED_MAP.replace(
      'conflicts: [',
      'conflicts: [ { between: ["image-tag/{env}", "release/{env}"], because: "same environment" },',
    );
    await expect(putMap(b.api, tied, version)).rejects.toMatchObject({ reason: 'LIVE_CONFLICT' });
    const { value } = await b.api.putConflictMap(as('admin'), {
      document: tied,
      expectedVersion: version,
      reason: 'x',
      onLiveConflict: 'revoke_newer',
    });
    expect(value.version).toBe(version + 1);
    expect((await check(a.api, second)).reason).toBe('map_changed');
  });
});

describe('time', () => {
  test('renewal extends, never past max hold or the end of authority', async () => {
    const run = await createRun(a.api, { forSeconds: 40 });
    const lease = await granted(a.api, run, [write(`release/${env()}`, 'promote')], { ttl: 20 * SECOND });
    const { value } = await b.api.renewLeases(as('runner'), {
      runId: run,
      renewals: [{ leaseId: lease.leaseId, ttl: 60 * SECOND, progressMarker: '1' }],
    });
    const { value: view } = await a.api.getRun(as('runner'), { runId: run });
    expect(value[0]?.lease?.expiresAt).toBe(view.run.authorityEndsAt);
    expect(lease.expiresAt ?? 0).toBeLessThan(view.run.authorityEndsAt + MILLISECOND);
  });
});

test('an unknown namespace is NOT_FOUND at once; a created one works and is apart from the others', async () => {
  const name = `elsewhere-${env()}`;
  const elsewhere = (role: 'admin' | 'runner') => as(role, { namespace: name });
  await expect(createRun(a.api, { context: elsewhere('runner') })).rejects.toMatchObject({
    reason: 'NAMESPACE_NOT_FOUND',
  });
  const { created } = await a.api.createNamespace(as('admin'), { name });
  expect(created).toBe(true);
  expect((await b.api.createNamespace(as('admin'), { name })).created).toBe(false);
  await createRun(b.api, { context: elsewhere('runner') });
  const listed = (await a.api.listNamespaces(as('auditor'), { page: { size: 10, token: '' } })).items;
  expect(listed.map((one) => one.name)).toEqual(expect.arrayContaining(['default', name]));
  const { value } = await a.api.getConflictMap(elsewhere('admin'), { version: 0 });
  expect(value).toBeNull();
});
