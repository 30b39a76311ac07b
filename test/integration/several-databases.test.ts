import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readDatabasesFile } from '../../src/platform/databases-file.js';
import type { WritApi } from '../../src/services/api.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { as, createRun, granted, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { TcpProxy } from '../support/tcp-proxy.js';

// One installation over two databases, the second behind a network that can be cut; two replicas.

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", actions: { promote: { access: write, concurrency: lease } } }
`;
const quiet = () => undefined;

let main: TestDatabase;
let eu: TestDatabase;
let network: TcpProxy;
let a: TestReplica;
let b: TestReplica;

let attempts = 0;
/** Made by the first test, in each attempt anew. */
let shop = '';

const inEu = (role: Parameters<typeof as>[0]) => as(role, { namespace: shop });
const databasesOf = async (api: WritApi) =>
  (await api.listNamespaces(as('admin'), { page: { size: 100, token: '' } })).items.map(
    ({ name, database }) => `${name} ${database}`,
  );

beforeAll(async () => {
  [main, eu] = [await createTestDatabase(), await createTestDatabase()];
  const { host, port } = new URL(eu.url);
  network = await TcpProxy.start(port === '' ? `${host}:5432` : host);
  const url = new URL(eu.url);
  url.host = network.endpoint;
  await migrate(eu.url, { log: quiet });
  const databases = { eu: url.href };
  [a, b] = [await startReplica({ url: main.url, databases }), await startReplica({ url: main.url, databases })];
});
afterAll(async () => {
  await a?.stop();
  await b?.stop();
  await network?.stop();
  await main?.drop();
  await eu?.drop();
});

it('a namespace lives where it was created, for every replica, and nowhere else', async () => {
  attempts += 1;
  shop = `eu-shop-${attempts}`;
  const { namespace, created } = await a.api.createNamespace(as('admin'), { name: shop, database: 'eu' });
  expect({ database: namespace.database, created }).toEqual({ database: 'eu', created: true });
  await b.api.putConflictMap(inEu('admin'), {
    document: MAP,
    expectedVersion: 0,
    reason: 'test',
    onLiveConflict: 'refuse',
  });
  const runId = await createRun(b.api, { context: inEu('runner') });
  const lease = await granted(a.api, runId, [write('release/prod', 'promote')], {}, inEu('runner'));
  const { value } = await b.api.getLease(inEu('runner'), { leaseId: lease.leaseId });
  expect(value.leaseId).toBe(lease.leaseId);
  const [inMain, there] = [
    createPostgresStore({ url: main.url, prepared: PREPARED }),
    createPostgresStore({ url: eu.url, prepared: PREPARED }),
  ];
  expect(await inMain.listNamespaces('', 10)).not.toContain(shop);
  expect(await there.listNamespaces('', 10)).toContain(shop);
  expect(await there.listNamespaces('', 10)).not.toContain('default');
  await inMain.close();
  await there.close();
  const another = `aa-main-${attempts}`;
  await b.api.createNamespace(as('admin'), { name: another });
  const all = await databasesOf(b.api);
  expect(all).toEqual([...all].sort());
  expect(all.filter((one) => [another, 'default', shop].includes(one.split(' ')[0] ?? ''))).toEqual([
    `${another} main`,
    'default main',
    `${shop} eu`,
  ]);
});

it('is not made a second time elsewhere, whoever is faster', async () => {
  const again = await b.api.createNamespace(as('admin'), { name: shop });
  expect({ created: again.created, database: again.namespace.database }).toEqual({ created: false, database: 'eu' });
  const elsewhere = { reason: 'NAMESPACE_ELSEWHERE' };
  await expect(a.api.createNamespace(as('admin'), { name: shop, database: 'main' })).rejects.toMatchObject(elsewhere);
  await expect(a.api.createNamespace(as('admin'), { name: 'default', database: 'eu' })).rejects.toMatchObject(
    elsewhere,
  );
  await expect(a.api.createNamespace(as('admin'), { name: 'other', database: 'us' })).rejects.toMatchObject({
    details: { violations: [{ field: 'database', description: expect.stringContaining('main, eu') }] },
  });
  const racing = await Promise.allSettled(
    ['main', 'eu', 'main', 'eu'].map((database, index) =>
      (index < 2 ? a : b).api.createNamespace(as('admin'), { name: 'raced', database }),
    ),
  );
  const made = racing.flatMap((one) => (one.status === 'fulfilled' ? [one.value.namespace.database] : []));
  expect(new Set(made).size).toBe(1);
  expect(racing.filter((one) => one.status === 'rejected')).toHaveLength(4 - made.length);
});

it('a database that is away takes its own namespaces along, and no others; a coordinator starts without it', async () => {
  network.refusing = true;
  network.cut();
  const refused = { faultClass: 'unavailable' };
  let late: TestReplica | undefined;
  try {
    await expect(a.api.getConflictMap(inEu('admin'), { version: 0 })).rejects.toMatchObject(refused);
    await createRun(a.api);
    await expect.poll(() => a.services.ready()).toEqual({ ready: true, reasons: [] });
    const url = new URL(eu.url);
    url.host = network.endpoint;
    late = await startReplica({ url: main.url, databases: { eu: url.href } });
    await createRun(late.api);
    await expect(late.api.getConflictMap(inEu('admin'), { version: 0 })).rejects.toMatchObject(refused);
    network.refusing = false;
    for (const replica of [a, late]) {
      await expect
        .poll(() => replica.api.getConflictMap(inEu('admin'), { version: 0 }).catch(() => null))
        .toMatchObject({ value: { version: 1 } });
    }
  } finally {
    network.refusing = false;
    await late?.stop();
  }
});

it('a replica that was not told of the database says so', async () => {
  const untold = await startReplica({ url: main.url });
  try {
    await expect(untold.api.getConflictMap(inEu('admin'), { version: 0 })).rejects.toMatchObject({
      reason: 'DATABASE_NOT_CONFIGURED',
      message: expect.stringContaining('"eu"'),
    });
  } finally {
    await untold.stop();
  }
});

it('a copy of a log that was left in another database is not followed', async () => {
  // As if the default namespace had been moved out of what is now another installation's second database.
  const stray = await createTestDatabase();
  const before = await startReplica({ url: stray.url });
  await createRun(before.api);
  await before.stop();
  const replica = await startReplica({ url: main.url, databases: { eu: eu.url, stray: stray.url } });
  try {
    const runId = await createRun(replica.api);
    const { value } = await replica.api.getRun(as('runner'), { runId });
    expect(value.run.runId).toBe(runId);
    expect(await databasesOf(replica.api)).toContain('default main');
    const { text } = await replica.metrics.render();
    expect(text.match(/^writ_leases_live\{namespace="default"\}/gm)).toHaveLength(1);
  } finally {
    await replica.stop();
    await stray.drop();
  }
});

it.each([
  ['[]', 'expected record'],
  ['{"Eu": "postgres://u:hunter2@db/x"}', 'a name is 1 to 64'],
  ['{"main": "postgres://u:hunter2@db/x"}', '"main" is the database'],
  ['{"eu": "mysql://u:hunter2@db/x"}', 'eu: must begin with postgres'],
  ['{"eu": "postgres://u:hunter2@db/x"', 'is not JSON'],
])('a databases file that is wrong is named, without its passwords: %s', async (text, problem) => {
  const dir = mkdtempSync(join(tmpdir(), 'writ-databases-'));
  const path = join(dir, 'databases.json');
  try {
    writeFileSync(path, text);
    const error = await readDatabasesFile(path).then(
      () => null,
      (caught: Error) => caught,
    );
    expect(error?.message).toContain(`${path}: `);
    expect(error?.message).toContain(problem);
    expect(error?.message).not.toContain('hunter2');
  } finally {
    rmSync(dir, { recursive: true });
  }
});
