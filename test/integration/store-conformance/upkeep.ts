import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { SECOND } from '../../../src/domain/time.js';
import {
  headAfter,
  SAMPLE_TIME,
  sampleAdmission,
  sampleBatch,
  sampleEnded,
  sampleEvent,
  sampleEvents,
  sampleHash,
  sampleKey,
  sampleLease,
  sampleRun,
} from '../../support/sample-records.js';
import { append, createNamespace, newNamespace, type Use } from './context.js';

export function upkeepTests(use: Use): void {
  it(
    'beats on the database clock',
    use(async ({ store }) => {
      const replicaId = randomUUID();
      const before = await store.readGate('any');
      const first = await store.heartbeat(replicaId);
      const second = await store.heartbeat(replicaId);
      expect(first).toMatchObject({ replicaId });
      expect(first.at).toBeGreaterThanOrEqual(before.now);
      expect(second.at).toBeGreaterThanOrEqual(first.at);
    }),
  );

  it(
    'remembers where a namespace lives, as the first one said',
    use(async ({ store }) => {
      const namespace = newNamespace();
      expect(await store.namespaceHome(namespace)).toBeNull();
      expect(await store.claimNamespaceHome(namespace, 'eu')).toBe('eu');
      expect(await store.claimNamespaceHome(namespace, 'us')).toBe('eu');
      expect(await store.namespaceHome(namespace)).toBe('eu');
    }),
  );

  it(
    'lets one replica publish a log at a time, by tokens that only rise',
    use(async ({ store, under }) => {
      const other = (await under.another()) ?? store;
      const [a, b] = [randomUUID(), randomUUID()];
      const [one, two] = [newNamespace(), newNamespace()];
      const [first] = await store.claimTailers(a, [one], 60 * SECOND);
      expect(await other.claimTailers(b, [one], 60 * SECOND)).toEqual([]);
      expect(await store.claimTailers(a, [one], 60 * SECOND)).toEqual([first]);
      await store.yieldTailers(a);
      const taken = await other.claimTailers(b, [two, one], 60 * SECOND);
      expect(taken.map(({ namespace }) => namespace).sort()).toEqual([one, two].sort());
      const later = taken.find(({ namespace }) => namespace === one);
      expect(later?.token).toBeGreaterThan(first?.token ?? Number.NaN);
      // Lapsed by time, and claimed again by the same one: nobody knows what happened between.
      await other.claimTailers(b, [one], 0);
      const [again] = await other.claimTailers(b, [one], 60 * SECOND);
      expect(again?.token).toBeGreaterThan(later?.token ?? Number.NaN);
      if (other !== store) await other.close();
    }),
  );

  it(
    'purges runs that ended before, with their leases and keys, in portions, and nothing else',
    use(async ({ store }) => {
      const runs = [1, 2, 3, 4].map((i) =>
        sampleRun({ runId: `run-${i}`, ...(i === 4 ? {} : { state: 'finished', endedAt: SAMPLE_TIME + i }) }),
      );
      const leases = runs.map((run) => {
        const lease = sampleLease({ leaseId: `lease-of-${run.runId}`, runId: run.runId });
        return run.endedAt === null ? lease : sampleEnded(lease);
      });
      const keys = runs.map((run) =>
        sampleKey({ scope: `run:${run.runId}`, runId: run.runId, leaseId: `lease-of-${run.runId}` }),
      );
      const [namespace, head] = await createNamespace(store, { runs, leases, keys });
      const left = async () => [
        (
          await store.loadRuns(
            namespace,
            runs.map((run) => run.runId),
          )
        ).records
          .map((run) => run.runId)
          .sort(),
        (
          await store.loadLeases(
            namespace,
            leases.map((lease) => lease.leaseId),
          )
        ).records
          .map((lease) => lease.runId)
          .sort(),
        (await store.loadKeys(namespace, keys)).records.map((binding) => binding.runId).sort(),
      ];
      expect(await store.purge(namespace, SAMPLE_TIME + 1, 10)).toBe(0);
      expect(await store.purge(namespace, SAMPLE_TIME + 3, 1)).toBe(1);
      expect(await left()).toEqual(Array(3).fill(['run-2', 'run-3', 'run-4']));
      expect(await store.purge(namespace, SAMPLE_TIME + 3, 10)).toBe(1);
      expect(await store.purge(namespace, SAMPLE_TIME + 3, 10)).toBe(0);
      expect(await left()).toEqual(Array(3).fill(['run-3', 'run-4']));
      expect((await store.readGate(namespace)).head).toEqual(head);
    }),
  );

  it(
    'finds whole ids of runs and leases by how they begin, in order, and no more than asked for',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const batchId = randomUUID();
      let last = head;
      const of = [
        ['ab00', 'ab01'],
        ['ab00', 'ab01'],
        ['ab02', 'b000'],
        ['aa99', ''],
        ['', 'ab03'],
      ] as const;
      const events = of.map(([runId, leaseId]) => {
        const event = sampleEvent(namespace, last, { runId, leaseId, batchId });
        last = headAfter([event]);
        return event;
      });
      await append(store, sampleBatch(namespace, head, { events }));
      expect(await store.findIds(namespace, 'ab', 10)).toEqual({
        runIds: ['ab00', 'ab02'],
        leaseIds: ['ab01', 'ab03'],
      });
      expect(await store.findIds(namespace, 'ab', 1)).toEqual({ runIds: ['ab00'], leaseIds: ['ab01'] });
      expect(await store.findIds(namespace, 'ab02', 10)).toEqual({ runIds: ['ab02'], leaseIds: [] });
      expect(await store.findIds(namespace, 'ff', 10)).toEqual({ runIds: [], leaseIds: [] });
      expect(await store.findIds(newNamespace(), 'ab', 10)).toEqual({ runIds: [], leaseIds: [] });
    }),
  );

  it(
    'keeps free texts beside their events, and erases the oldest, or those of a run, and nothing else',
    use(async ({ store }) => {
      const text = (of: string) => ({ digest: sampleHash(of, 1, of), salt: '5a'.repeat(16), text: of });
      const [namespace, head] = await createNamespace(store);
      const about = (of: string, runId: string) => ({ bodyVersion: 2, runId, texts: [text(of), text(`${of}'`)] });
      const batchId = randomUUID();
      let last = head;
      const events = (['r', 'q', 'r'] as const).map((runId, i) => {
        const event = sampleEvent(namespace, last, { ...about(`text ${i}`, runId), batchId });
        last = headAfter([event]);
        return event;
      });
      await append(store, sampleBatch(namespace, head, { events }));
      const told = async () =>
        (await store.readTail(namespace, head.revision, 10)).map((event) => event.texts.map((one) => one.text).sort());
      expect(await store.readTail(namespace, head.revision, 10)).toEqual(events);
      expect(await store.listEvents(namespace, { runId: 'q', limit: 5 })).toEqual([events[1]]);
      expect(await store.eraseTextsOfRun(namespace, 'r', last.revision)).toBe(2);
      expect(await told()).toEqual([[], ['text 1', "text 1'"], ['text 2', "text 2'"]]);
      expect(await store.eraseTextsOfRun(namespace, 'r', last.revision + 1)).toBe(2);
      expect(await store.eraseTextsOfRun(namespace, 'r', last.revision + 1)).toBe(0);
      expect(await store.eraseTextsOfRun(namespace, '', last.revision + 1)).toBe(0);
      expect(await store.eraseTextsBefore(namespace, events[1]?.time ?? 0, 10)).toBe(0);
      expect(await store.eraseTextsBefore(namespace, (events[1]?.time ?? 0) + 1, 10)).toBe(2);
      expect(await told()).toEqual([[], [], []]);
      expect((await store.readTail(namespace, head.revision, 10)).map((event) => event.hash)).toEqual(
        events.map((event) => event.hash),
      );
    }),
  );

  it(
    'keeps a run that has a lease which has not ended, and drops old keys of no run',
    use(async ({ store }) => {
      const runs = [sampleRun({ state: 'stopped', endedAt: SAMPLE_TIME })];
      const keys = [
        sampleKey({ scope: 'principal:x', key: 'old', use: 'stop_runs', runId: '', leaseId: '' }),
        sampleKey({
          scope: 'principal:x',
          key: 'new',
          use: 'stop_runs',
          runId: '',
          leaseId: '',
          boundAt: SAMPLE_TIME + 9,
        }),
      ];
      const [namespace] = await createNamespace(store, { runs, leases: [sampleLease()], keys });
      expect(await store.purge(namespace, SAMPLE_TIME + 5, 10)).toBe(0);
      expect((await store.loadRuns(namespace, ['run-1'])).records).toEqual(runs);
      expect((await store.loadKeys(namespace, keys)).records.map((binding) => binding.key)).toEqual(['new']);
    }),
  );

  it(
    'keeps revocations while they matter, each by its last one, and drops those that do not',
    use(async ({ store }) => {
      const { now } = await store.readGate('default');
      const dead = { subject: 'jti:dead', revokedAt: now - 200 * SECOND, until: now - 140 * SECOND } as const;
      const live = { subject: 'lease:live', revokedAt: now, until: now + 60 * SECOND } as const;
      const [namespace, head] = await createNamespace(store, { revocations: [dead, live] });
      const again = { ...live, revokedAt: now + 1, until: now + 61 * SECOND };
      await append(store, sampleBatch(namespace, head, { revocations: [again] }));
      expect((await store.loadSnapshot(namespace))?.revocations).toEqual([again]);
      await store.purge(namespace, SAMPLE_TIME, 10);
      expect((await store.loadSnapshot(namespace))?.revocations).toEqual([again]);
    }),
  );

  it(
    'keeps what is known of the rehearsals of each kind, by its last word',
    use(async ({ store }) => {
      const window = { resources: ['doc/a'], runIds: ['run-1'], until: SAMPLE_TIME };
      const last = {
        resource: 'doc/a',
        target: 'doc-api',
        suiteVersion: '1',
        digest: 'd'.repeat(64),
        cases: [{ name: 'conflict', outcome: 'passed' as const }],
        lacks: '',
        basis: 'introspect',
        recordedBy: 'admin',
        recordedAt: SAMPLE_TIME,
        validUntil: SAMPLE_TIME + SECOND,
      };
      const begun = { pattern: 'doc/{id}', last: null, window };
      const other = { pattern: 'dns/{env}', last, window };
      const [namespace, head] = await createNamespace(store, { rehearsals: [begun, other] });
      expect((await store.loadSnapshot(namespace))?.rehearsals).toEqual([other, begun]);
      const recorded = { ...begun, last, window: null };
      await append(store, sampleBatch(namespace, head, { rehearsals: [recorded] }));
      expect((await store.loadSnapshot(namespace))?.rehearsals).toEqual([other, recorded]);
    }),
  );

  it(
    'keeps freezes by their pattern until they are thawed',
    use(async ({ store }) => {
      const freeze = {
        pattern: 'doc/{id}',
        scope: 'subtree' as const,
        deniesChecks: false,
        reason: 'drill',
        frozenBy: 'olga',
        frozenAt: SAMPLE_TIME,
        until: null,
        effectiveAt: SAMPLE_TIME,
      };
      const other = { ...freeze, pattern: 'dns/{env}', scope: 'exact' as const };
      const [namespace, head] = await createNamespace(store, { freezes: [freeze, other] });
      expect((await store.loadSnapshot(namespace))?.freezes).toEqual([other, freeze]);
      const harder = { ...freeze, deniesChecks: true, until: SAMPLE_TIME + SECOND, effectiveAt: SAMPLE_TIME + 1 };
      const changed = sampleBatch(namespace, head, { freezes: [harder], thawed: [other.pattern, 'never/frozen'] });
      expect((await store.append(sampleBatch(namespace, null, { thawed: [freeze.pattern] }))).outcome).toBe('stale');
      await append(store, changed);
      expect((await store.loadSnapshot(namespace))?.freezes).toEqual([harder]);
    }),
  );

  it(
    'keeps tracked writes: the open ones are loaded, closed ones found by id and by check, and all go with their run',
    use(async ({ store }) => {
      const runs = [sampleRun({ state: 'stopping', endsAs: 'stopped' })];
      const leases = [sampleEnded(sampleLease())];
      const open = sampleAdmission({ leaseId: leases[0]?.leaseId ?? '', observedVersion: '7' });
      const later = { ...open, admissionId: 'admission-2', requestId: 'request-2', admittedAt: SAMPLE_TIME + 1 };
      const [namespace, head] = await createNamespace(store, { runs, leases, admissions: [later, open] });
      const loaded = await store.loadSnapshot(namespace);
      expect(loaded?.admissions).toEqual([open, later]);
      expect(loaded?.runs).toEqual(runs);
      const doubted = { ...later, inDoubtSince: SAMPLE_TIME + 2, unsure: true };
      const outcome = { result: 'succeeded', at: SAMPLE_TIME + 3, by: 'olga', settled: true, newVersion: '8' } as const;
      const closed = { ...open, inDoubtSince: SAMPLE_TIME + 2, outcome };
      const over = [sampleRun({ state: 'stopped', endedAt: SAMPLE_TIME + 4 })];
      await append(store, sampleBatch(namespace, head, { admissions: [closed, doubted], runs: over }));
      expect((await store.loadSnapshot(namespace))?.admissions).toEqual([doubted]);
      const { leaseId } = open;
      const found = await store.loadAdmissions(
        namespace,
        ['admission-1', 'none'],
        [
          { leaseId, requestId: 'request-1' },
          { leaseId, requestId: 'request-2' },
          { leaseId: 'none', requestId: 'request-1' },
        ],
      );
      expect(found.revision).toBe(head.revision + 1);
      expect(found.records).toHaveLength(2);
      expect(found.records).toEqual(expect.arrayContaining([closed, doubted]));
      expect(await store.purge(namespace, SAMPLE_TIME + 5, 10)).toBe(1);
      expect((await store.loadAdmissions(namespace, ['admission-1', 'admission-2'], [])).records).toEqual([]);
    }),
  );

  it(
    'refuses two final rows of one tracked write',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const twice = { admissions: [sampleAdmission(), sampleAdmission()] };
      await expect(store.append(sampleBatch(namespace, head, twice))).rejects.toMatchObject({ kind: 'bug' });
      expect((await store.loadSnapshot(namespace))?.admissions).toEqual([]);
    }),
  );

  it(
    'keeps a run of which something is under lock delay, until that is over',
    use(async ({ store }) => {
      const runs = [sampleRun({ state: 'stopped', endedAt: SAMPLE_TIME })];
      const until = SAMPLE_TIME + 72 * SECOND;
      const delayed = sampleEnded(sampleLease({ leaseId: 'l' }), { lockDelay: { until, over: false } });
      const [namespace, head] = await createNamespace(store, { runs, leases: [delayed] });
      expect(await store.purge(namespace, SAMPLE_TIME + 5, 10)).toBe(0);
      expect((await store.loadSnapshot(namespace))?.leases).toEqual([delayed]);
      const over = { ...delayed, lockDelay: { until, over: true } };
      await append(store, sampleBatch(namespace, head, { leases: [over] }));
      expect((await store.loadSnapshot(namespace))?.leases).toEqual([]);
      expect(await store.purge(namespace, SAMPLE_TIME + 5, 10)).toBe(1);
    }),
  );

  it(
    'knows until when local kinds are closed after lost history',
    use(async ({ store }) => {
      let [namespace, head] = await createNamespace(store);
      const { identity } = await store.readGate(namespace);
      for (const localKindsFrom of [SAMPLE_TIME, null]) {
        const body = JSON.stringify({
          identity,
          lostHistory: true,
          ...(localKindsFrom !== null && { localKindsFrom }),
        });
        const events = sampleEvents(namespace, head, 1, { kind: 'database_identified', body });
        head = await append(store, sampleBatch(namespace, head, { events }));
        expect((await store.loadSnapshot(namespace))?.recorded).toEqual({ identity, localKindsFrom });
      }
    }),
  );
}
