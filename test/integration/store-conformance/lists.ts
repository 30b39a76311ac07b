import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Store } from '../../../src/storage/store.js';
import {
  SAMPLE_TIME,
  sampleBatch,
  sampleEnded,
  sampleLease,
  sampleMapVersion,
  sampleRun,
} from '../../support/sample-records.js';
import { append, createNamespace, type Use } from './context.js';

export function listTests(use: Use): void {
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
