import { expect, it } from 'vitest';
import type { Lease } from '../../../src/domain/lease.js';
import type { Run } from '../../../src/domain/run.js';
import { SECOND } from '../../../src/domain/time.js';
import type { AppendBatch, UnmatchedResource } from '../../../src/storage/store.js';
import {
  SAMPLE_TIME,
  sampleBatch,
  sampleEnded,
  sampleEntries,
  sampleEntry,
  sampleEvents,
  sampleKey,
  sampleLease,
  sampleMapVersion,
  sampleRun,
  sampleWaiter,
} from '../../support/sample-records.js';
import { append, byId, createNamespace, newNamespace, type Use } from './context.js';

export function projectionTests(use: Use): void {
  it(
    'keeps every field of a lease, waiting, active and ended',
    use(async ({ under, store }) => {
      const entries = [
        sampleEntry(),
        sampleEntry({
          resource: 'dns/ü "x" \\',
          access: 'stable_read',
          scope: 'subtree',
          actions: [],
          exclusive: false,
          impliedBy: 'implies[0]',
          mode: 'observe',
          resolver: 'release-owner',
          observedVersion: '41',
          token: 0,
          observedRefusal: 'held',
        }),
        sampleEntry({ resource: 'a/b', access: 'read', actions: ['x', 'y'], observedVersion: '' }),
        sampleEntry({ resource: 'local/x', validation: 'local' }),
        sampleEntry({ resource: 'view/x', validation: 'view', maxViewAge: 2_000_000 }),
      ];
      const ruleLocks = [{ key: '!0:tenant=acme', mode: 'IX' as const, rule: 'conflicts[0]', entry: 1 }];
      const active = sampleLease({
        entries,
        ruleLocks,
        requestedTtl: 5 * SECOND,
        progressMarker: 'step 3',
        claimBy: SAMPLE_TIME + 10 * SECOND,
        credentialsUntil: SAMPLE_TIME + 40 * SECOND,
        progressWindow: null,
        purpose: 'ü \n "',
      });
      const waiter = sampleWaiter({ entries: entries.map((entry) => ({ ...entry, token: 0 })), ruleLocks });
      const taskWaiter = sampleWaiter({
        request: { entries: [], task: { name: 'rotate-token', parameters: { tenant: 'acme' } }, resourceSet: null },
      });
      const setWaiter = sampleWaiter({ request: { entries: [], task: null, resourceSet: 'incident-4711' } });
      const ended = sampleEnded(sampleLease({ entries }), { endReason: 'no_progress' });
      const refusal = {
        kind: 'forbidden' as const,
        message: 'Closed.',
        resource: 'secret/ü',
        resolution: { action: 'Leave it to a person.', who: 'runner', retryable: false },
      };
      const refused = sampleEnded(sampleWaiter(), { endReason: 'refused', endRefusal: refusal });
      const until = SAMPLE_TIME + 72 * SECOND;
      const delayed = sampleEnded(sampleLease({ entries }), { lockDelay: { until, over: false } });
      const outlasted = sampleEnded(sampleLease({ entries }), { lockDelay: { until, over: true } });
      const leases = [active, waiter, taskWaiter, setWaiter, ended, refused, delayed, outlasted];
      const [namespace] = await createNamespace(store, { leases });
      const second = (await under.another()) ?? store;
      const found = await second.loadLeases(
        namespace,
        leases.map((lease) => lease.leaseId),
      );
      expect(byId(found.records)).toEqual(byId(leases));
      const snapshot = await second.loadSnapshot(namespace);
      expect(byId(snapshot?.leases ?? [])).toEqual(
        byId(leases.filter((lease) => lease.state !== 'ended' || lease === delayed)),
      );
      if (second !== store) await second.close();
    }),
  );

  it(
    'keeps every field of runs, keys, map versions and unmatched resources',
    use(async ({ store }) => {
      const runs = [
        sampleRun({ runId: 'run-a' }),
        sampleRun({
          runId: 'run-b',
          state: 'blocked',
          blockCause: 'database_changed',
          stateReason: 'ü',
          allowed: [],
          escalation: [],
        }),
        sampleRun({
          runId: 'run-c',
          state: 'stopped',
          endedAt: SAMPLE_TIME + 1,
          allowed: [{ pattern: '{any...}', actions: ['a', 'b'] }],
        }),
      ];
      const keys = [
        sampleKey({ key: 'a' }),
        sampleKey({ scope: 'principal:x', key: 'a', use: 'stop_runs', runId: '', leaseId: '', stopped: ['r1', 'r2'] }),
      ];
      const unmatched = [{ resource: 'x/y', times: 3, lastSeenAt: SAMPLE_TIME }];
      const mapVersion = sampleMapVersion();
      const [namespace, head] = await createNamespace(store, { runs, keys, unmatched, mapVersion });
      expect(byId((await store.loadRuns(namespace, ['run-c', 'run-a', 'run-b', 'run-x'])).records)).toEqual(runs);
      const asked = [...keys.map(({ scope, key }) => ({ scope, key })), { scope: 'run:run-1', key: 'unbound' }];
      const found = await store.loadKeys(namespace, asked);
      expect(found.revision).toBe(head.revision);
      expect([...found.records].sort((a, b) => (a.scope < b.scope ? 1 : -1))).toEqual(keys);
      const snapshot = await store.loadSnapshot(namespace);
      expect(snapshot).toMatchObject({ gate: { head }, mapVersion, unmatched });
      expect(byId(snapshot?.runs ?? [])).toEqual(runs.slice(0, 2));
    }),
  );

  it(
    'replaces rows by their final state: renewed, re-expanded, granted, ended, rebound',
    use(async ({ under, store }) => {
      const active = sampleLease({ leaseId: 'active' });
      const waiter = sampleWaiter({ leaseId: 'waiter' });
      let [namespace, head] = await createNamespace(store, {
        leases: [active, waiter],
        keys: [sampleKey({ use: 'tombstone' })],
      });
      const renewed = { ...active, expiresAt: SAMPLE_TIME + 90 * SECOND, progressMarker: 'p2' };
      head = await append(store, sampleBatch(namespace, head, { leases: [renewed] }));
      const second = (await under.another()) ?? store;
      const load = async (): Promise<Lease[]> =>
        byId((await second.loadLeases(namespace, ['active', 'waiter'])).records);
      expect(await load()).toEqual([renewed, waiter]);
      const reexpanded = { ...renewed, generation: 2, entries: sampleEntries(3, 'reexpanded') };
      const granted = { ...sampleLease({ leaseId: 'waiter' }), idempotencyKey: waiter.idempotencyKey };
      head = await append(store, sampleBatch(namespace, head, { leases: [reexpanded, granted], keys: [sampleKey()] }));
      expect(await load()).toEqual([reexpanded, granted]);
      const ended = sampleEnded(reexpanded);
      head = await append(second, sampleBatch(namespace, head, { leases: [ended] }));
      expect(await load()).toEqual([ended, granted]);
      expect((await store.loadSnapshot(namespace))?.leases).toEqual([granted]);
      expect((await store.loadKeys(namespace, [{ scope: 'run:run-1', key: 'acquire-1' }])).records).toEqual([
        sampleKey(),
      ]);
      if (second !== store) await second.close();
    }),
  );

  it(
    'loads a snapshot that is the fold of what was written',
    use(async ({ store }) => {
      const model = new Model();
      let [namespace, head] = await createNamespace(store);
      for (let step = 0; step < 60; step += 1) {
        const change = model.change(step);
        const events = sampleEvents(namespace, head, 1 + (step % 3));
        head = await append(store, sampleBatch(namespace, head, { ...change, events }));
        if (step % 10 !== 9) continue;
        const snapshot = await store.loadSnapshot(namespace);
        expect(snapshot?.gate.head).toEqual(head);
        expect(byId(snapshot?.leases ?? [])).toEqual(model.liveLeases());
        expect(byId(snapshot?.runs ?? [])).toEqual(model.liveRuns());
        expect(snapshot?.unmatched).toEqual(model.unmatchedResources());
      }
    }),
  );

  it(
    'loads the keys by which those who wait come back, and no others',
    use(async ({ store }) => {
      const waiter = sampleWaiter({ leaseId: 'waiter', idempotencyKey: 'waits' });
      const active = sampleLease({ leaseId: 'active', idempotencyKey: 'holds' });
      const ofWaiter = sampleKey({ key: 'waits', leaseId: 'waiter' });
      const [namespace, head] = await createNamespace(store, {
        leases: [waiter, active],
        keys: [
          ofWaiter,
          sampleKey({ key: 'holds', leaseId: 'active' }),
          sampleKey({ scope: 'run:run-2', key: 'waits' }),
        ],
      });
      expect((await store.loadSnapshot(namespace))?.keys).toEqual([ofWaiter]);
      await append(store, sampleBatch(namespace, head, { leases: [sampleEnded(waiter)] }));
      expect((await store.loadSnapshot(namespace))?.keys).toEqual([]);
    }),
  );

  it(
    'answers with the revision for what it does not know',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const nothing = { revision: head.revision, records: [] };
      expect(await store.loadLeases(namespace, ['x'])).toEqual(nothing);
      expect(await store.loadRuns(namespace, ['x', 'y'])).toEqual(nothing);
      expect(await store.loadKeys(namespace, [{ scope: 'x', key: 'y' }])).toEqual(nothing);
      expect(await store.loadLeases(namespace, [])).toEqual(nothing);
      expect(await store.loadLeases(newNamespace(), ['x'])).toEqual({ revision: 0, records: [] });
    }),
  );
}

/** A slow and obvious copy of what the projections should hold. */
class Model {
  readonly #leases = new Map<string, Lease>();
  readonly #runs = new Map<string, Run>();
  readonly #unmatched = new Map<string, UnmatchedResource>();

  change(step: number): Partial<AppendBatch> {
    const leases = [
      step % 4 === 0 ? sampleWaiter({ leaseId: `lease-${step}` }) : sampleLease({ leaseId: `lease-${step}` }),
    ];
    const earlier = [...this.#leases.values()].filter((lease) => lease.state !== 'ended');
    earlier.forEach((lease, index) => {
      const turn = (step * 7 + index * 3) % 11;
      if (turn === 0) leases.push(sampleEnded(lease));
      if (turn === 1 && lease.state === 'active') leases.push({ ...lease, expiresAt: (lease.expiresAt ?? 0) + step });
      if (turn === 2)
        leases.push({ ...lease, generation: lease.generation + 1, entries: sampleEntries(1 + (step % 5), `${step}`) });
    });
    const runs = step % 5 === 0 ? [sampleRun({ runId: `run-${step}` })] : [];
    const old = this.#runs.get(`run-${step - 12}`);
    if (old !== undefined) runs.push({ ...old, state: 'finished', endedAt: SAMPLE_TIME + step });
    const unmatched =
      step % 6 === 0 ? [{ resource: `r-${step % 4}`, times: step, lastSeenAt: SAMPLE_TIME + step }] : [];
    for (const lease of leases) this.#leases.set(lease.leaseId, lease);
    for (const run of runs) this.#runs.set(run.runId, run);
    for (const one of unmatched) this.#unmatched.set(one.resource, one);
    return { leases, runs, unmatched };
  }

  liveLeases = (): Lease[] => byId([...this.#leases.values()].filter((lease) => lease.state !== 'ended'));
  liveRuns = (): Run[] => byId([...this.#runs.values()].filter((run) => run.endedAt === null));
  unmatchedResources = (): UnmatchedResource[] =>
    [...this.#unmatched.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1));
}
