import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreError } from '../../src/storage/store.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  granted,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

let server: PrivatePostgres;
let replica: TestReplica;

beforeAll(async () => {
  server = await startPrivatePostgres();
  replica = await startReplica({ url: server.url, dataDir: await makeTestDirectory('witness') });
  await putMap(replica.api, SIMPLE_MAP);
});

afterAll(async () => {
  await replica?.stop();
  await server?.stop();
});

let next = 0;
const fresh = (): string => `item/${++next}`;

test('P8: with the database down nothing is decided, readiness says so, and it recovers without a restart', async () => {
  const run = await createRun(replica.api);
  const lease = await granted(replica.api, run, [write(fresh(), 'set')]);
  await server.kill9();
  try {
    await expect(check(replica.api, lease)).rejects.toMatchObject({ faultClass: 'unavailable' });
    await expect(
      replica.api.acquireWriteSet(as('runner'), acquireInput(run, [write(fresh(), 'set')])),
    ).rejects.toMatchObject({
      faultClass: expect.stringMatching(/unavailable|unknown_outcome/),
    });
    const seen = await eventually(
      () => replica.services.ready(),
      ({ ready }) => !ready,
    );
    expect(seen.reasons.join(' ')).toMatch(/database/i);
  } finally {
    await server.restart();
  }
  await eventually(
    () => replica.services.ready(),
    ({ ready }) => ready,
  );
  expect((await check(replica.api, lease)).allowed).toBe(true);
});

test('F24: a database that turned read-only is refused with its reason, and again taken when it can write', async () => {
  const run = await createRun(replica.api);
  const item = fresh();
  const sql = (await import('pg')).default;
  const admin = new sql.Client({ connectionString: server.url });
  admin.on('error', () => undefined);
  await admin.connect();
  await admin.query('ALTER SYSTEM SET default_transaction_read_only = on');
  await admin.query('SELECT pg_reload_conf()');
  try {
    const refused = await eventually(
      () =>
        replica.api.acquireWriteSet(as('runner'), acquireInput(run, [write(item, 'set')])).then(
          () => 'granted',
          (error) => error.reason,
        ),
      (reason) => reason !== 'granted',
    );
    expect(refused).toBe('DATABASE_READ_ONLY');
    await eventually(
      () => replica.services.ready(),
      ({ ready }) => !ready,
    );
  } finally {
    await admin.query('SET default_transaction_read_only = off');
    await admin.query('ALTER SYSTEM RESET default_transaction_read_only');
    await admin.query('SELECT pg_reload_conf()');
    await admin.end();
  }
  await eventually(
    () => replica.services.ready(),
    ({ ready }) => ready,
  );
  await granted(replica.api, run, [write(fresh(), 'set')]);
});

test('F24: a disk on which no event fits is no readiness, though the heartbeat fits; it is tried again without a restart', async () => {
  let full = true;
  const filling = await startReplica({
    url: server.url,
    wrap: (store) =>
      new Proxy(store, {
        get(of, name) {
          if (name === 'append' && full)
            return async () => Promise.reject(new StoreError('read_only', 'No space left'));
          const value = Reflect.get(of, name);
          return typeof value === 'function' ? value.bind(of) : value;
        },
      }),
  });
  try {
    await expect(createRun(filling.api)).rejects.toMatchObject({ reason: 'DATABASE_READ_ONLY' });
    const { ready, reasons } = filling.services.ready();
    expect([ready, reasons.join(' ')]).toEqual([false, expect.stringMatching(/disk is full/)]);
    full = false;
    // Nobody sends it calls while it is not ready.
    await eventually(
      () => filling.services.ready(),
      (seen) => seen.ready,
    );
    await createRun(filling.api);
    expect(filling.services.ready().ready).toBe(true);
  } finally {
    await filling.stop();
  }
});
