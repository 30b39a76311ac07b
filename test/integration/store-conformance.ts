import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import type { Run } from '../../src/domain/run.js';
import { SECOND } from '../../src/domain/time.js';
import type {
  AppendBatch,
  AppendResult,
  EventRecord,
  Head,
  Store,
  UnmatchedResource,
} from '../../src/storage/store.js';
import {
  headAfter,
  SAMPLE_TIME,
  sampleAdmission,
  sampleBatch,
  sampleEnded,
  sampleEntries,
  sampleEntry,
  sampleEvent,
  sampleEvents,
  sampleHash,
  sampleKey,
  sampleLease,
  sampleMapVersion,
  sampleRun,
  sampleWaiter,
} from '../support/sample-records.js';

/** A store with nothing in it; tests use namespaces of their own. */
export interface StoreUnderTest {
  readonly store: Store;
  /** A second store on the same data, such as another replica has; null: this kind cannot be shared. */
  another(): Promise<Store> | null;
  dispose(): Promise<void>;
}

/** What every implementation of Store promises; the engine relies on nothing else. */
export function storeConformance(name: string, makeStore: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let context: Context;
    beforeAll(async () => {
      const under = await makeStore();
      context = { under, store: under.store };
    });
    afterAll(async () => {
      await context?.under.dispose();
    });
    const lazily: Use = (test) => () => test(context);
    describe('append', () => appendTests(lazily));
    describe('refusals', () => refusalTests(lazily));
    describe('exclusive append', () => exclusiveTests(lazily));
    describe('reading the log', () => logTests(lazily));
    describe('projections', () => projectionTests(lazily));
    describe('lists', () => listTests(lazily));
    describe('upkeep', () => upkeepTests(lazily));
  });
}

interface Context {
  readonly under: StoreUnderTest;
  readonly store: Store;
}
type Use = (test: (context: Context) => Promise<void>) => () => Promise<void>;

const newNamespace = (): string => `ns-${randomUUID()}`;

function expectAppended(result: AppendResult | null): void {
  expect(result?.outcome).toBe('appended');
}

/** Appends, expects success, and returns the head after it. */
async function append(store: Store, batch: AppendBatch): Promise<Head> {
  expectAppended(await store.append(batch));
  return headAfter(batch.events);
}

/** A new namespace with its first event. */
async function createNamespace(store: Store, overrides: Partial<AppendBatch> = {}): Promise<[string, Head]> {
  const namespace = newNamespace();
  return [namespace, await append(store, sampleBatch(namespace, null, overrides))];
}

async function wholeLog(store: Store, namespace: string, page = 1_000): Promise<EventRecord[]> {
  const log: EventRecord[] = [];
  for (;;) {
    const events = await store.readTail(namespace, log.at(-1)?.revision ?? 0, page);
    log.push(...events);
    if (events.length < page) return log;
  }
}

function expectChained(log: readonly EventRecord[]): void {
  log.forEach((event, index) => {
    expect(event.revision).toBe(index + 1);
    if (index > 0) expect(event.prevHash).toBe(log[index - 1]?.hash);
  });
}

const byId = <T extends { leaseId: string } | { runId: string }>(records: readonly T[]): T[] =>
  [...records].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
const idOf = (record: { leaseId: string } | { runId: string }): string =>
  'leaseId' in record ? record.leaseId : record.runId;

function appendTests(use: Use): void {
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

function refusalTests(use: Use): void {
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

function exclusiveTests(use: Use): void {
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

function logTests(use: Use): void {
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

function projectionTests(use: Use): void {
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

function listTests(use: Use): void {
  it(
    'pages through leases by id, by run and state',
    use(async ({ store }) => {
      const leases = Array.from({ length: 9 }, (_, i) => {
        const lease = sampleLease({ leaseId: `lease-${i}`, runId: i % 2 === 0 ? 'run-a' : 'run-b' });
        return i % 3 === 0 ? sampleEnded(lease) : lease;
      });
      const [namespace] = await createNamespace(store, { leases });
      const ids = async (filter: Omit<Parameters<Store['listLeases']>[1], 'limit'>, limit = 100) =>
        (await store.listLeases(namespace, { ...filter, limit })).map((lease) => Number(lease.leaseId.slice(6)));
      expect(await ids({})).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(await ids({}, 4)).toEqual([0, 1, 2, 3]);
      expect(await ids({ afterId: 'lease-3' }, 4)).toEqual([4, 5, 6, 7]);
      expect(await ids({ runId: 'run-a' })).toEqual([0, 2, 4, 6, 8]);
      expect(await ids({ states: ['ended'] })).toEqual([0, 3, 6]);
      expect(await ids({ states: ['active', 'waiting'], runId: 'run-a', afterId: 'lease-2' })).toEqual([4, 8]);
      expect(await ids({ runId: 'nobody' })).toEqual([]);
      expect(await store.listLeases(namespace, { limit: 1 })).toEqual([leases[0]]);
    }),
  );

  it(
    'pages through runs by id, by principal and state',
    use(async ({ store }) => {
      const runs = Array.from({ length: 8 }, (_, i) =>
        sampleRun({
          runId: `run-${i}`,
          principal: i % 2 === 0 ? 'runner:a' : 'runner:b',
          ...(i >= 6 ? { state: 'finished', endedAt: SAMPLE_TIME } : {}),
        }),
      );
      const [namespace] = await createNamespace(store, { runs });
      const ids = async (filter: Omit<Parameters<Store['listRuns']>[1], 'limit'>, limit = 100) =>
        (await store.listRuns(namespace, { ...filter, limit })).map((run) => Number(run.runId.slice(4)));
      expect(await ids({})).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(await ids({ afterId: 'run-5' }, 1)).toEqual([6]);
      expect(await ids({ principal: 'runner:a' })).toEqual([0, 2, 4, 6]);
      expect(await ids({ states: ['active'] })).toEqual([0, 1, 2, 3, 4, 5]);
      expect(await ids({ states: ['active', 'finished'], principal: 'runner:b', afterId: 'run-1' })).toEqual([3, 5, 7]);
      expect(await store.listRuns(namespace, { limit: 1 })).toEqual([runs[0]]);
    }),
  );

  it(
    'lists map versions newest first, and refuses one twice',
    use(async ({ store }) => {
      let [namespace, head] = await createNamespace(store);
      const versions = [1, 2, 3].map((version) => sampleMapVersion({ version, text: `# version ${version}\n` }));
      for (const mapVersion of versions) head = await append(store, sampleBatch(namespace, head, { mapVersion }));
      const [first, second, third] = versions;
      expect(await store.listMapVersions(namespace, null, 2)).toEqual([third, second]);
      expect(await store.listMapVersions(namespace, 2, 10)).toEqual([first]);
      expect(await store.readMapVersion(namespace, 2)).toEqual(second);
      expect(await store.readMapVersion(namespace, 4)).toBeNull();
      const again = sampleBatch(namespace, head, { mapVersion: sampleMapVersion({ version: 3 }) });
      await expect(store.append(again)).rejects.toMatchObject({ kind: 'bug' });
      expect((await store.loadSnapshot(namespace))?.mapVersion).toEqual(third);
    }),
  );

  it(
    'lists what was signed and sent newest first, also what is of one moment (A2)',
    use(async ({ store }) => {
      const [namespace] = await createNamespace(store);
      const checkpoint = (revision: number) => ({
        ...{
          namespace,
          revision,
          hash: `${revision}`.repeat(64),
          time: SAMPLE_TIME,
          keyId: 'key',
          publicKeyPem: 'pem',
        },
        ...{ signature: Buffer.alloc(64, revision), sentTo: `log of replica ${revision}` },
      });
      for (const revision of [7, 7, 9]) await store.keepCheckpoint(checkpoint(revision));
      const all = await store.listCheckpoints(namespace, null, 10);
      expect(all.map(({ number, ...rest }) => rest)).toEqual([9, 7, 7].map(checkpoint));
      expect(await store.listCheckpoints(namespace, all[0]?.number ?? 0, 1)).toEqual([all[1]]);
      expect(await store.listCheckpoints(`${namespace}-other`, null, 10)).toEqual([]);
    }),
  );

  it(
    'pages through namespaces',
    use(async ({ store }) => {
      const prefix = `list-${randomUUID()}`;
      const names = ['a', 'b', 'c', 'd'].map((letter) => `${prefix}-${letter}`);
      for (const namespace of names) {
        const head = await append(store, sampleBatch(namespace, null));
        await append(store, sampleBatch(namespace, head));
      }
      expect(await store.listNamespaces(prefix, 3)).toEqual(names.slice(0, 3));
      expect((await store.listNamespaces(`${prefix}-c`, 100))[0]).toBe(names[3]);
      expect(await store.listNamespaces('', 100_000)).toEqual(expect.arrayContaining(names));
    }),
  );
}

function upkeepTests(use: Use): void {
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
