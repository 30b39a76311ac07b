import { expect, it } from 'vitest';
import type { EventRecord, Store } from '../../../src/storage/store.js';
import { SAMPLE_TIME, sampleBatch, sampleEntry, sampleEvents, sampleLease } from '../../support/sample-records.js';
import { append, createNamespace, expectChained, newNamespace, type Use, wholeLog } from './context.js';

export function appendTests(use: Use): void {
  it(
    'creates a namespace by its first batch, once',
    use(async ({ store }) => {
      const namespace = newNamespace();
      expect((await store.readGate(namespace)).head).toBeNull();
      expect(await store.loadSnapshot(namespace)).toBeNull();
      const batch = sampleBatch(namespace, null);
      const head = await append(store, batch);
      expect((await store.readGate(namespace)).head).toEqual(head);
      const second = await store.append(sampleBatch(namespace, null));
      expect(second).toMatchObject({ outcome: 'stale', gate: { head } });
      expect(await wholeLog(store, namespace)).toEqual(batch.events);
    }),
  );

  it(
    'keeps every column of every event, exactly',
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const body = JSON.stringify({
        text: 'quote " backslash \\ newline \n é 😀 \u2028',
        nested: { deep: ['x', 1.5, null] },
      });
      const events = sampleEvents(namespace, head, 2, {
        time: Number.MAX_SAFE_INTEGER,
        bodyVersion: 7,
        actor: 'svc:überwacher "quoted"',
        runId: 'run-1',
        leaseId: 'lease-1',
        resources: ['release/prod-eu', 'with "quotes" and \\ and, comma', '{braces}', ''],
        requestIds: ['req-1', 'req-2'],
        body,
      });
      await append(store, sampleBatch(namespace, head, { events }));
      expect(await store.readTail(namespace, 1, 10)).toEqual(events);
      expect(await store.readEvent(namespace, 3)).toEqual(events[1]);
      expect((await store.readGate(namespace)).head?.time).toBe(Number.MAX_SAFE_INTEGER);
    }),
  );

  it(
    'keeps numbers exact up to 2^53 - 1, in microseconds too',
    use(async ({ store }) => {
      const big = Number.MAX_SAFE_INTEGER;
      const lease = sampleLease({
        entries: [sampleEntry({ token: big }), sampleEntry({ token: 1_795_963_129_969_033 })],
        expiresAt: 1_795_963_129_969_033,
        maxExpiresAt: big,
        createdAt: 1_795_963_129_969_031,
        ttl: big,
      });
      const [namespace] = await createNamespace(store, { leases: [lease] });
      expect((await store.loadLeases(namespace, [lease.leaseId])).records).toEqual([lease]);
    }),
  );

  it(
    'writes the log without gaps under 8 concurrent appenders, one winner per revision',
    use(async ({ under, store }) => {
      const second = (await under.another()) ?? store;
      const [namespace] = await createNamespace(store);
      const won: EventRecord[] = [];
      let losses = 0;
      const appender = async (own: Store, size: number): Promise<void> => {
        for (let wins = 0; wins < 15; ) {
          const { head } = await own.readGate(namespace);
          const batch = sampleBatch(namespace, head, { events: sampleEvents(namespace, head, size) });
          const { outcome } = await own.append(batch);
          if (outcome === 'appended') {
            wins += 1;
            won.push(...batch.events);
          } else {
            expect(outcome).toBe('stale');
            losses += 1;
          }
        }
      };
      await Promise.all(Array.from({ length: 8 }, (_, i) => appender(i % 2 === 0 ? store : second, 1 + (i % 3))));
      const log = await wholeLog(store, namespace);
      expectChained(log);
      expect(log.slice(1)).toEqual(won.sort((a, b) => a.revision - b.revision));
      expect(losses).toBeGreaterThan(0);
      if (second !== store) await second.close();
    }),
  );

  it(
    'reads a head at least as new as any append that was answered',
    use(async ({ under, store }) => {
      const second = (await under.another()) ?? store;
      let [namespace, head] = await createNamespace(store);
      for (let i = 0; i < 20; i += 1) {
        head = await append(i % 2 === 0 ? store : second, sampleBatch(namespace, head));
        expect((await (i % 2 === 0 ? second : store).readGate(namespace)).head).toEqual(head);
      }
      if (second !== store) await second.close();
    }),
  );

  it(
    "reports a clock that never goes back over one namespace, and is not the head's",
    use(async ({ store }) => {
      const [namespace, head] = await createNamespace(store);
      const before = await store.readGate(namespace);
      const result = await store.append(sampleBatch(namespace, head));
      const after = await store.readGate(namespace);
      expect(result.gate?.now).toBeGreaterThanOrEqual(before.now);
      expect(after.now).toBeGreaterThanOrEqual(result.gate?.now ?? Number.POSITIVE_INFINITY);
      expect(after.now).toBeGreaterThan(SAMPLE_TIME);
      expect(Number.isSafeInteger(after.now)).toBe(true);
      expect(after).toMatchObject({ inRecovery: false, durable: true, identity: before.identity });
    }),
  );
}
