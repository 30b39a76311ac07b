import { expect, it } from 'vitest';
import type { EventRecord, Store } from '../../../src/storage/store.js';
import { sampleBatch, sampleEvents, sampleLease } from '../../support/sample-records.js';
import { append, createNamespace, expectAppended, expectChained, newNamespace, type Use, wholeLog } from './context.js';

export function exclusiveTests(use: Use): void {
  it(
    'hands over the tail and the gate, and appends what is decided',
    use(async ({ store }) => {
      const [namespace, first] = await createNamespace(store);
      const events = sampleEvents(namespace, first, 3);
      const head = await append(store, sampleBatch(namespace, first, { events }));
      let seen: readonly EventRecord[] = [];
      const lease = sampleLease();
      const result = await store.appendExclusively(namespace, first.revision, (tail, gate) => {
        seen = tail;
        expect(gate.head).toEqual(head);
        return sampleBatch(namespace, gate.head, { identity: gate.identity, leases: [lease] });
      });
      expectAppended(result);
      expect(seen).toEqual(events);
      expect(await wholeLog(store, namespace)).toHaveLength(5);
      expect((await store.loadSnapshot(namespace))?.leases).toEqual([lease]);
    }),
  );

  it(
    'appends nothing for null, or when the decision throws or is refused, and lets go',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      expect(await store.appendExclusively(namespace, 0, () => null)).toBeNull();
      const failure = new Error('the decision failed');
      const failing = store.appendExclusively(namespace, 0, () => {
        throw failure;
      });
      await expect(failing).rejects.toBe(failure);
      const late = await store.appendExclusively(namespace, 0, (_, gate) =>
        sampleBatch(namespace, gate.head, { reliedOnAsPast: gate.now * 2, leases: [sampleLease()] }),
      );
      expect(late).toMatchObject({ outcome: 'time', gate: { head } });
      await append(store, sampleBatch(namespace, head));
    }),
  );

  it(
    'creates a namespace too',
    use(async ({ store }) => {
      const namespace = newNamespace();
      const result = await store.appendExclusively(namespace, 0, (tail, gate) => {
        expect([tail, gate.head]).toEqual([[], null]);
        return sampleBatch(namespace, null);
      });
      expectAppended(result);
    }),
  );

  it(
    'never loses against ordinary appends or other exclusive ones',
    use(async ({ under, store }) => {
      const second = (await under.another()) ?? store;
      const [namespace] = await createNamespace(store);
      let exclusiveWins = 0;
      let running = true;
      const ordinary = async (own: Store): Promise<void> => {
        while (running) {
          const { head } = await own.readGate(namespace);
          await own.append(sampleBatch(namespace, head));
        }
      };
      const exclusive = async (own: Store): Promise<void> => {
        for (let i = 0; i < 8; i += 1) {
          const result = await own.appendExclusively(namespace, 0, (_, gate) => sampleBatch(namespace, gate.head));
          expectAppended(result);
          exclusiveWins += 1;
        }
      };
      const load = [ordinary(store), ordinary(second)];
      await Promise.all([exclusive(store), exclusive(store), exclusive(second), exclusive(second)]);
      running = false;
      await Promise.all(load);
      expect(exclusiveWins).toBe(32);
      expectChained(await wholeLog(store, namespace));
      if (second !== store) await second.close();
    }),
  );
}
