import { expect, it } from 'vitest';
import { SECOND } from '../../../src/domain/time.js';
import type { AppendBatch, Head, Store } from '../../../src/storage/store.js';
import {
  SAMPLE_TIME,
  sampleBatch,
  sampleEvents,
  sampleHash,
  sampleKey,
  sampleLease,
  sampleMapVersion,
  sampleRun,
} from '../../support/sample-records.js';
import { append, createNamespace, newNamespace, type Use } from './context.js';

export function refusalTests(use: Use): void {
  /** A batch that writes to every table. */
  function fullBatch(namespace: string, head: Head | null, overrides: Partial<AppendBatch> = {}): AppendBatch {
    return sampleBatch(namespace, head, {
      leases: [sampleLease({ leaseId: 'lease-of-refused' })],
      runs: [sampleRun({ runId: 'run-of-refused' })],
      keys: [sampleKey({ key: 'key-of-refused' })],
      newKeys: [{ scope: 'run:run-1', key: 'key-of-refused' }],
      unmatched: [{ resource: 'nobody/knows', times: 1, lastSeenAt: SAMPLE_TIME }],
      mapVersion: sampleMapVersion(),
      events: sampleEvents(namespace, head, 2, { requestIds: ['request-of-refused'] }),
      ...overrides,
    });
  }

  async function expectUnchanged(store: Store, namespace: string, head: Head): Promise<void> {
    const snapshot = await store.loadSnapshot(namespace);
    expect(snapshot).toMatchObject({ gate: { head }, leases: [], runs: [], mapVersion: null, unmatched: [] });
    expect((await store.loadKeys(namespace, [{ scope: 'run:run-1', key: 'key-of-refused' }])).records).toEqual([]);
    expect(await store.listEvents(namespace, { requestId: 'request-of-refused', limit: 10 })).toEqual([]);
  }

  it(
    'stale: another revision, another hash, a namespace that does not exist',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      for (const wrong of [
        { ...head, hash: sampleHash('other') },
        { ...head, revision: 2 },
      ]) {
        expect(await store.append(fullBatch(namespace, wrong))).toMatchObject({ outcome: 'stale', gate: { head } });
      }
      await expectUnchanged(store, namespace, head);
      expect(await store.append(fullBatch(newNamespace(), head))).toMatchObject({
        outcome: 'stale',
        gate: { head: null },
      });
    }),
  );

  it(
    'time: what was taken to be past is not, what was taken to be in the future is past',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const { now } = await store.readGate(namespace);
      const hour = 3_600 * SECOND;
      for (const wrong of [{ reliedOnAsPast: now + hour }, { reliedOnAsFuture: now }, { reliedOnAsFuture: now - 1 }]) {
        const result = await store.append(fullBatch(namespace, head, wrong));
        expect(result).toMatchObject({ outcome: 'time', gate: { head } });
      }
      await expectUnchanged(store, namespace, head);
      await append(store, fullBatch(namespace, head, { reliedOnAsPast: now, reliedOnAsFuture: now + hour }));
    }),
  );

  it(
    'identity: any part of it is another',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const { identity } = await store.readGate(namespace);
      const others = [
        { systemIdentifier: '1' },
        { timeline: identity.timeline + 1 },
        { databaseOid: identity.databaseOid + 1 },
        { eventTableOid: identity.eventTableOid + 1 },
        { postmasterStart: identity.postmasterStart - 1 },
      ];
      for (const other of others) {
        const result = await store.append(fullBatch(namespace, head, { identity: { ...identity, ...other } }));
        expect(result).toMatchObject({ outcome: 'identity', gate: { identity } });
      }
      await expectUnchanged(store, namespace, head);
      await append(store, fullBatch(namespace, head, { identity }));
    }),
  );

  it(
    'known_keys: a key taken to be new is bound, and its binding comes with the answer (P6)',
    use(async ({ store }) => {
      const bound = sampleKey({ key: 'bound', leaseId: 'lease-7' });
      const [namespace, head] = await createNamespace(store, {
        keys: [bound],
        newKeys: [{ scope: bound.scope, key: 'bound' }],
      });
      const newKeys = [
        { scope: bound.scope, key: 'bound' },
        { scope: bound.scope, key: 'key-of-refused' },
        { scope: 'principal:other', key: 'bound' },
      ];
      const result = await store.append(fullBatch(namespace, head, { newKeys }));
      expect(result).toMatchObject({ outcome: 'known_keys', gate: { head }, keys: [bound] });
      await expectUnchanged(store, namespace, head);
      const [other, otherHead] = await createNamespace(store);
      await append(store, fullBatch(other, otherHead, { newKeys }));
    }),
  );

  it(
    'names the first that holds of: identity, stale, known_keys, time',
    use(async ({ store }) => {
      const key = { scope: 'run:run-1', key: 'bound' };
      const [namespace, head] = await createNamespace(store, { keys: [sampleKey({ key: 'bound' })] });
      const gate = await store.readGate(namespace);
      const identity = { ...gate.identity, timeline: 99 };
      const stale = { ...head, revision: 2 };
      const faults = { newKeys: [key], reliedOnAsPast: gate.now * 2 };
      expect(await store.append(fullBatch(namespace, stale, { ...faults, identity }))).toMatchObject({
        outcome: 'identity',
      });
      expect(await store.append(fullBatch(namespace, stale, faults))).toMatchObject({ outcome: 'stale' });
      expect(await store.append(fullBatch(namespace, head, faults))).toMatchObject({ outcome: 'known_keys' });
      const late = { ...faults, newKeys: [] };
      expect(await store.append(fullBatch(namespace, head, late))).toMatchObject({ outcome: 'time' });
    }),
  );

  it(
    'refuses two final rows for one id as a bug, and writes nothing',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const twice: Partial<AppendBatch>[] = [
        { leases: [sampleLease({ leaseId: 'a' }), sampleLease({ leaseId: 'a', generation: 2 })] },
        { runs: [sampleRun({ runId: 'a' }), sampleRun({ runId: 'a', state: 'blocked' })] },
        { keys: [sampleKey({ key: 'a' }), sampleKey({ key: 'a', use: 'tombstone' })] },
      ];
      for (const overrides of twice) {
        await expect(store.append(fullBatch(namespace, head, overrides))).rejects.toMatchObject({ kind: 'bug' });
      }
      await expectUnchanged(store, namespace, head);
    }),
  );

  it(
    'refuses events that do not follow the head, and none at all, as a bug',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const gap = sampleEvents(namespace, { ...head, revision: 2 }, 1);
      await expect(store.append(sampleBatch(namespace, head, { events: gap }))).rejects.toMatchObject({ kind: 'bug' });
      await expect(store.append(sampleBatch(namespace, head, { events: [] }))).rejects.toMatchObject({ kind: 'bug' });
      await expectUnchanged(store, namespace, head);
    }),
  );

  it(
    'refuses U+0000 as bad data, and goes on',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const events = sampleEvents(namespace, head, 2, { body: '{"a":"\u0000"}' });
      await expect(store.append(fullBatch(namespace, head, { events }))).rejects.toMatchObject({ kind: 'bad_data' });
      await expectUnchanged(store, namespace, head);
      await append(store, fullBatch(namespace, head));
    }),
  );
}
