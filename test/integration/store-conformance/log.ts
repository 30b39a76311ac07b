import { expect, it } from 'vitest';
import type { EventRecord, Store } from '../../../src/storage/store.js';
import { sampleBatch, sampleEvents } from '../../support/sample-records.js';
import { append, createNamespace, expectChained, newNamespace, type Use, wholeLog } from './context.js';

export function logTests(use: Use): void {
  it(
    'pages through the tail without gap or repetition',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      await append(store, sampleBatch(namespace, head, { events: sampleEvents(namespace, head, 24) }));
      const log = await wholeLog(store, namespace, 7);
      expect(log).toHaveLength(25);
      expectChained(log);
      expect(await store.readTail(namespace, 25, 7)).toEqual([]);
      expect(await store.readTail(newNamespace(), 0, 7)).toEqual([]);
      expect(await store.readEvent(namespace, 26)).toBeNull();
      expect((await store.readEvent(namespace, 25))?.revision).toBe(25);
    }),
  );

  it(
    'reads large events a few at a time, and never fewer than two while there are more',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const body = JSON.stringify({ map: 'x'.repeat(700_000) });
      const events = sampleEvents(namespace, head, 4, { body });
      const next = await append(store, sampleBatch(namespace, head, { events }));
      const huge = JSON.stringify({ map: 'x'.repeat(2_000_000) });
      await append(store, sampleBatch(namespace, next, { events: sampleEvents(namespace, next, 3, { body: huge }) }));
      const places = (events: readonly EventRecord[]) => events.map(({ revision }) => revision);
      expect(places(await store.readTail(namespace, 0, 100))).toEqual([1, 2, 3]);
      expect(places(await store.readTail(namespace, 5, 100))).toEqual([6, 7]);
      expect(places(await store.readTail(namespace, 5, 1))).toEqual([6]);
      expect(places(await store.readTail(namespace, 7, 100))).toEqual([8]);
      const find = async (filter: Omit<Parameters<Store['listEvents']>[1], 'limit'>) =>
        places(await store.listEvents(namespace, { ...filter, limit: 100 }));
      expect(await find({})).toEqual([1, 2, 3]);
      expect(await find({ afterRevision: 5, newestFirst: true })).toEqual([8, 7]);
      expect(await find({ kinds: ['lease_granted'] })).toEqual([2, 3]);
      expect(await find({ kinds: ['lease_granted'], beforeRevision: 5, newestFirst: true })).toEqual([4, 3]);
    }),
  );

  it(
    'finds events by run, lease, resource, kind and request, within a range, either way',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const plain = sampleEvents(namespace, head, 12);
      const events = plain.map(
        (event, i): EventRecord => ({
          ...event,
          kind: i % 3 === 0 ? 'lease_ended' : 'lease_granted',
          runId: i % 2 === 0 ? 'run-a' : 'run-b',
          leaseId: `lease-${i % 4}`,
          resources: i % 4 === 1 ? ['release/prod-eu', `dns/${i}`] : [`dns/${i}`],
          requestIds: i === 5 || i === 7 ? ['req-x', `req-${i}`, 'req-x'] : [],
        }),
      );
      await append(store, sampleBatch(namespace, head, { events }));
      const all = await wholeLog(store, namespace);
      const find = (filter: Omit<Parameters<Store['listEvents']>[1], 'limit'>, limit = 100) =>
        store.listEvents(namespace, { ...filter, limit });
      const where = (test: (event: EventRecord) => boolean) => all.filter(test);
      expect(await find({})).toEqual(all);
      expect(await find({ newestFirst: true }, 3)).toEqual(all.slice(-3).reverse());
      expect(await find({ runId: 'run-a' })).toEqual(where((e) => e.runId === 'run-a'));
      expect(await find({ leaseId: 'lease-3', newestFirst: true })).toEqual(
        where((e) => e.leaseId === 'lease-3').reverse(),
      );
      const withResource = where((e) => e.resources.includes('release/prod-eu'));
      expect(withResource).toHaveLength(3);
      expect(await find({ resource: 'release/prod-eu' })).toEqual(withResource);
      expect(await find({ resource: 'release/prod-eu', newestFirst: true }, 2)).toEqual(
        withResource.slice(1).reverse(),
      );
      expect(await find({ resource: 'release' })).toEqual([]);
      expect(await find({ kinds: ['lease_ended', 'namespace_created'] })).toEqual(
        where((e) => e.kind === 'lease_ended' || e.kind === 'namespace_created'),
      );
      expect(await find({ requestId: 'req-x' })).toEqual(where((e) => e.requestIds.includes('req-x')));
      expect(await find({ requestId: 'req-7' })).toEqual(where((e) => e.requestIds.includes('req-7')));
      const range = { afterRevision: 3, beforeRevision: 9 };
      expect(await find(range)).toEqual(all.slice(3, 8));
      expect(await find({ ...range, kinds: ['lease_granted'], newestFirst: true })).toEqual(
        where((e) => e.kind === 'lease_granted' && e.revision > 3 && e.revision < 9).reverse(),
      );
      expect(await find({ runId: 'run-b', resource: 'release/prod-eu', kinds: ['lease_granted'] }, 1)).toEqual(
        where(
          (e) => e.runId === 'run-b' && e.resources.includes('release/prod-eu') && e.kind === 'lease_granted',
        ).slice(0, 1),
      );
      // All conditions at once make the longest statement name there is.
      const wanted = { runId: 'run-b', leaseId: 'lease-1', resource: 'release/prod-eu', requestId: 'req-x' };
      const whole = { ...wanted, afterRevision: 0, beforeRevision: 1_000, kinds: ['lease_granted'] };
      for (const newestFirst of [true, false]) {
        expect(await find({ ...whole, newestFirst })).toEqual(
          where(
            (e) =>
              e.kind === 'lease_granted' &&
              e.runId === wanted.runId &&
              e.leaseId === wanted.leaseId &&
              e.resources.includes(wanted.resource) &&
              e.requestIds.includes(wanted.requestId),
          ),
        );
      }
      expect(await store.listEvents(newNamespace(), { resource: 'x', limit: 5 })).toEqual([]);
    }),
  );

  it(
    'knows the identity that was recorded last',
    use(async ({ store }) => {
      let [namespace, head] = await createNamespace(store);
      const { identity } = await store.readGate(namespace);
      expect((await store.loadSnapshot(namespace))?.recorded).toBeNull();
      for (const recorded of [{ ...identity, timeline: 7 }, identity]) {
        const body = JSON.stringify({ identity: recorded, kind: 'database_identified', lostHistory: false });
        const events = sampleEvents(namespace, head, 1, { kind: 'database_identified', body });
        head = await append(store, sampleBatch(namespace, head, { events }));
        head = await append(store, sampleBatch(namespace, head));
        expect((await store.loadSnapshot(namespace))?.recorded).toEqual({ identity: recorded, localKindsFrom: null });
      }
    }),
  );
}
