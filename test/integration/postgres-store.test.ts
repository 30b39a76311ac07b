import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LOCK_CLASS, lockKey } from '../../src/storage/postgres/gate.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore, type PostgresStoreOptions } from '../../src/storage/postgres/postgres-store.js';
import { type Head, type Store, StoreError } from '../../src/storage/store.js';
import { dyingPostgres } from '../support/dying-postgres.js';
import { later } from '../support/later.js';
import {
  createTestDatabase,
  type PrivatePostgres,
  startPrivatePostgres,
  type TestDatabase,
} from '../support/postgres.js';
import {
  headAfter,
  sampleBatch,
  sampleEnded,
  sampleEntry,
  sampleEvents,
  sampleKey,
  sampleLease,
  sampleRun,
} from '../support/sample-records.js';
import { type StoreUnderTest, storeConformance } from './store-conformance.js';

const log = (): void => undefined;

async function onDatabase(database: TestDatabase, options: Partial<PostgresStoreOptions>): Promise<StoreUnderTest> {
  await migrate(database.url, { log });
  const store = createPostgresStore({ url: database.url, ...options });
  return {
    store,
    another: async () => createPostgresStore({ url: database.url, ...options }),
    async dispose() {
      await store.close();
      await database.drop();
    },
  };
}

storeConformance('postgres', async () => onDatabase(await createTestDatabase(), {}));
storeConformance('postgres, nothing prepared, no hints', async () =>
  onDatabase(await createTestDatabase(), { prepared: false }),
);

const secondServer = process.env.WRIT_TEST_DATABASE_URL_2;
if (secondServer !== undefined && secondServer !== '') {
  storeConformance('postgres, second server', async () => onDatabase(await createDatabaseOn(secondServer), {}));
}

// F11: the URL of a superuser through a transaction-mode PgBouncer; migrations go through it, too.
const pooler = process.env.WRIT_TEST_POOLER_URL;
if (pooler !== undefined && pooler !== '') {
  storeConformance('postgres behind a pooler', async () =>
    onDatabase(await createDatabaseOn(pooler), { prepared: false }),
  );
}

async function createDatabaseOn(adminUrl: string): Promise<TestDatabase> {
  const name = `writ_store_${randomBytes(8).toString('hex')}`;
  await once(adminUrl, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return { url: url.href, name, drop: () => once(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) };
}

async function once(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

/** A raw connection, to stand in the way with. */
async function connectRaw(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** The backend of the store that waits for a lock, or for a standby; asked again until there is one, or it is too late. */
async function waitingBackend(observer: pg.Client, waitFor: string, tooLate = (): boolean => false): Promise<number> {
  while (!tooLate()) {
    const { rows } = await observer.query<{ pid: number }>(
      `SELECT a.pid FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.application_name = 'writ'
       AND (a.wait_event_type = $1 OR a.wait_event = $1)`,
      [waitFor],
    );
    if (rows[0] !== undefined) return rows[0].pid;
    await pause(5);
  }
  return 0;
}

describe('postgres store', () => {
  let database: TestDatabase;
  let store: Store;
  let raw: pg.Client;
  let observer: pg.Client;
  let namespace: string;
  let head: Head;

  beforeAll(async () => {
    database = await createTestDatabase();
    await migrate(database.url, { log });
    raw = await connectRaw(database.url);
    observer = await connectRaw(database.url);
  });
  afterAll(async () => {
    await raw?.end();
    await observer?.end();
    await database?.drop();
  });
  afterEach(async () => {
    await raw.query('ROLLBACK');
    await store.close();
  });

  async function open(options: Partial<PostgresStoreOptions> = {}): Promise<void> {
    store = createPostgresStore({ url: database.url, notify: false, ...options });
    namespace = `ns-${randomBytes(6).toString('hex')}`;
    const batch = sampleBatch(namespace, null);
    expect((await store.append(batch)).outcome).toBe('appended');
    head = headAfter(batch.events);
  }

  async function expectUsable(used = store): Promise<void> {
    const gate = await used.readGate(namespace);
    expect((await used.append(sampleBatch(namespace, gate.head))).outcome).toBe('appended');
  }

  /** Another store on the same namespace, which waits for nothing as long as `store` does: only what is to fail does. */
  async function withImpatient(
    options: Partial<PostgresStoreOptions>,
    use: (impatient: Store) => Promise<void>,
  ): Promise<void> {
    const impatient = createPostgresStore({ url: database.url, notify: false, ...options });
    try {
      await use(impatient);
      await raw.query('ROLLBACK');
      // It may lose its patience with a slow machine, too, and yet goes on.
      await expect.poll(() => expectUsable(impatient).catch((error: unknown) => error)).toBeUndefined();
    } finally {
      await impatient.close();
    }
  }

  it('refuses to change or remove an event, unless archiving', async () => {
    await open();
    const changes = [
      `UPDATE writ.event SET actor = 'nobody' WHERE namespace = '${namespace}'`,
      `DELETE FROM writ.event WHERE namespace = '${namespace}'`,
      'TRUNCATE writ.event',
      'UPDATE writ.event_request SET revision = 1',
    ];
    for (const change of changes) await expect(raw.query(change)).rejects.toThrow(/insert-only/);
    await raw.query(`BEGIN; SET LOCAL writ.archiving = 'on'`);
    await expect(raw.query(changes[0] ?? '')).rejects.toThrow(/insert-only/);
    await raw.query(`ROLLBACK; BEGIN; SET LOCAL writ.archiving = 'on'`);
    expect((await raw.query(changes[1] ?? '')).rowCount).toBe(1);
  });

  it('busy while the namespace is held exclusively, and while somebody waits to hold it so', async () => {
    await open();
    await raw.query('BEGIN');
    await raw.query('SELECT pg_advisory_xact_lock_shared($1, $2)', [LOCK_CLASS, lockKey(namespace)]);
    expect((await store.append(sampleBatch(namespace, head))).outcome).toBe('appended');
    const exclusive = later(store.appendExclusively(namespace, 0, (_, gate) => sampleBatch(namespace, gate.head)));
    await waitingBackend(observer, 'Lock');
    expect((await store.append(sampleBatch(namespace, head))).outcome).toBe('busy');
    await raw.query('COMMIT');
    expect((await exclusive)?.outcome).toBe('appended');
    await raw.query('BEGIN');
    await raw.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_CLASS, lockKey(namespace)]);
    expect(await store.append(sampleBatch(namespace, head))).toMatchObject({
      outcome: 'busy',
      gate: { head: { revision: 3 } },
    });
  });

  it('appends exclusively although others wait to do the same', async () => {
    await open();
    let waiting: Promise<unknown> | undefined;
    const result = await store.appendExclusively(namespace, 0, (_, gate) => {
      waiting = raw.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_CLASS, lockKey(namespace)]);
      // The decision is synchronous, so the other one is given the time to queue up by this.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
      return sampleBatch(namespace, gate.head);
    });
    expect(result?.outcome).toBe('appended');
    await waiting;
  });

  it('gives up the wait for the exclusive lock', async () => {
    await open();
    await raw.query('BEGIN');
    await raw.query('SELECT pg_advisory_xact_lock_shared($1, $2)', [LOCK_CLASS, lockKey(namespace)]);
    const result = await store.appendExclusively(namespace, 0, () => {
      throw new Error('must not be asked');
    });
    expect(result).toMatchObject({ outcome: 'busy', gate: { head } });
    await expectUsable();
  });

  it('an append that waits for another in vain is lost, not broken', async () => {
    const setting = `ALTER ROLE CURRENT_USER IN DATABASE ${database.name} SET lock_timeout =`;
    await raw.query(`${setting} '100ms'`);
    await open();
    await raw.query(`${setting} '5s'`);
    await raw.query('BEGIN');
    await raw.query('LOCK TABLE writ.event IN SHARE MODE');
    expect(await store.append(sampleBatch(namespace, head))).toEqual({ outcome: 'stale', gate: null });
    await raw.query('ROLLBACK');
    await expectUsable();
  });

  it.each([
    ['the backend is terminated', 'pg_terminate_backend'],
    ['the statement is cancelled', 'pg_cancel_backend'],
  ])('unknown outcome when %s', async (_, kill) => {
    await open();
    await raw.query('BEGIN');
    await raw.query('LOCK TABLE writ.event IN ACCESS EXCLUSIVE MODE');
    const answer = store.append(sampleBatch(namespace, head)).catch((error: unknown) => error);
    await observer.query(`SELECT ${kill}($1)`, [await waitingBackend(observer, 'Lock')]);
    expect(await answer).toMatchObject({ name: 'StoreError', kind: 'unknown_outcome' });
    await raw.query('ROLLBACK');
    await expectUsable();
  });

  it('a read whose backend is terminated is unavailable', async () => {
    await open();
    await raw.query('BEGIN');
    await raw.query('LOCK TABLE writ.event IN ACCESS EXCLUSIVE MODE');
    const answer = store.readGate(namespace).catch((error: unknown) => error);
    await observer.query('SELECT pg_terminate_backend($1)', [await waitingBackend(observer, 'Lock')]);
    expect(await answer).toMatchObject({ kind: 'unavailable' });
    await raw.query('ROLLBACK');
    await expectUsable();
  });

  it.each([1, 2, 3])(
    'a server that ends in the packet of ReadyForQuery %i ends no process of ours',
    async (answers) => {
      await open();
      const dying = await dyingPostgres(database.url, answers);
      const other = createPostgresStore({ url: dying.url, notify: false });
      // With no listener on the connection, the error of the driver is uncaught and fails this run.
      const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => other.readGate(namespace)));
      expect(dying.told()).toBeGreaterThan(0);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ kind: 'unavailable' });
      }
      await other.close();
      await dying.close();
    },
  );

  it('unknown outcome when the answer does not come in time', async () => {
    await open();
    await withImpatient({ answerTimeoutMs: 1_000 }, async (impatient) => {
      await raw.query('BEGIN');
      await raw.query('LOCK TABLE writ.event IN ACCESS EXCLUSIVE MODE');
      await expect(impatient.append(sampleBatch(namespace, head))).rejects.toMatchObject({ kind: 'unknown_outcome' });
    });
  });

  it('unavailable when no connection is free in time', async () => {
    await open();
    await withImpatient({ maxConnections: 2, connectTimeoutMs: 1_000 }, async (impatient) => {
      await raw.query('BEGIN');
      await raw.query('LOCK TABLE writ.event IN ACCESS EXCLUSIVE MODE');
      const stuck = later(impatient.readGate(namespace));
      await waitingBackend(observer, 'Lock');
      await expect(impatient.append(sampleBatch(namespace, head))).rejects.toMatchObject({ kind: 'unavailable' });
      await raw.query('ROLLBACK');
      await stuck;
    });
  });

  it('unavailable when nobody listens, without a word of the password', async () => {
    await open();
    const closed = createPostgresStore({ url: 'postgres://writ:s3cret-pass@127.0.0.1:1/writ' });
    const error = await closed.append(sampleBatch(namespace, head)).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(inspectDeeply(error)).not.toContain('s3cret-pass');
    await closed.close();
    expect(() => createPostgresStore({ url: 'postgres://u:s3cret-pass@[nonsense' })).toThrow(/cannot be parsed/);
    try {
      createPostgresStore({ url: 'postgres://u:s3cret-pass@[nonsense' });
    } catch (failure) {
      expect(inspectDeeply(failure)).not.toContain('s3cret-pass');
    }
  });

  it('read_only in the words of the database, and recovers by itself (F24)', async () => {
    await open();
    const target = `ALTER DATABASE ${database.name} SET default_transaction_read_only =`;
    await raw.query(`${target} on`);
    const fresh = createPostgresStore({ url: database.url, notify: false });
    try {
      await expect(fresh.append(sampleBatch(namespace, head))).rejects.toMatchObject({
        kind: 'read_only',
        message: expect.stringContaining('read-only transaction'),
      });
      expect((await fresh.readGate(namespace)).head).toEqual(head);
    } finally {
      await raw.query(`${target} off`);
      await fresh.close();
    }
    await expectUsable();
  });

  it('bad_data for what text cannot hold or an index cannot, bug for what breaks an invariant', async () => {
    await open();
    const half = sampleEvents(namespace, head, 1, { actor: 'half a pair: \ud83d' });
    await expect(store.append(sampleBatch(namespace, head, { events: half }))).rejects.toMatchObject({
      kind: 'bad_data',
    });
    const long = sampleKey({ key: randomBytes(4_000).toString('hex') });
    await expect(store.append(sampleBatch(namespace, head, { keys: [long] }))).rejects.toMatchObject({
      kind: 'bad_data',
    });
    const noToken = sampleLease({ entries: [sampleEntry({ token: Number.NaN })] });
    await expect(store.append(sampleBatch(namespace, head, { leases: [noToken] }))).rejects.toMatchObject({
      kind: 'bad_data',
    });
    const past = sampleLease({ expiresAt: 9, maxExpiresAt: 8 });
    await expect(store.append(sampleBatch(namespace, head, { leases: [past] }))).rejects.toMatchObject({
      kind: 'bug',
      message: expect.stringContaining('lease_active'),
    });
    expect((await store.readGate(namespace)).head).toEqual(head);
    await expectUsable();
  });

  it('another unique violation than the one of the event is a bug', async () => {
    await open();
    await raw.query('INSERT INTO writ.map_version VALUES ($1, 1, $2, $2, $2, $2, 1)', [namespace, '{}']);
    const mapVersion = { version: 1, text: '', document: '{}', author: '', reason: '', createdAt: 1 };
    await expect(store.append(sampleBatch(namespace, head, { mapVersion }))).rejects.toMatchObject({ kind: 'bug' });
  });

  it('not durable is an identity outcome, and says so in the gate', async () => {
    await open();
    const target = `ALTER DATABASE ${database.name}`;
    await raw.query(`${target} SET synchronous_commit = off`);
    const fresh = createPostgresStore({ url: database.url, notify: false });
    try {
      const result = await fresh.append(sampleBatch(namespace, head));
      expect(result).toMatchObject({ outcome: 'identity', gate: { head, durable: false } });
    } finally {
      await raw.query(`${target} RESET synchronous_commit`);
      await fresh.close();
    }
  });

  it('hints at what others append, not at its own, and hears again after the connection was lost', async () => {
    await open({ notify: true });
    const other = createPostgresStore({ url: database.url });
    const heard: string[] = [];
    const hints: (() => void)[] = [];
    const unsubscribe = other.onAppended((hinted) => {
      heard.push(hinted);
      for (const wake of hints.splice(0)) wake();
    });
    const own: string[] = [];
    store.onAppended((hinted) => own.push(hinted));
    // A hint may be lost while the listener connects, so it is given again until it is heard.
    const appendUntilHeard = async (): Promise<void> => {
      for (let count = heard.length; heard.length === count; ) {
        await expectUsable();
        await Promise.race([new Promise<void>((resolve) => hints.push(resolve)), pause(50)]);
      }
    };
    await appendUntilHeard();
    await observer.query(
      `SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.query LIKE 'LISTEN%'`,
    );
    await appendUntilHeard();
    expect(new Set(heard)).toEqual(new Set([namespace]));
    expect(own).toEqual([]);
    unsubscribe();
    await other.close();
  });

  it('renewals are HOT and leave the write sets alone', async () => {
    await open();
    let leases = Array.from({ length: 40 }, () => sampleLease());
    let last = head;
    const { identity } = await store.readGate(namespace);
    const appendLeases = async (): Promise<void> => {
      const batch = sampleBatch(namespace, last, { leases, identity });
      expect((await store.append(batch)).outcome).toBe('appended');
      last = headAfter(batch.events);
    };
    await appendLeases();
    await store.close();
    const before = await tableStatistics(observer);
    store = createPostgresStore({ url: database.url, notify: false });
    // A replica that starts: it knows the write sets from what it loads.
    leases = [...((await store.loadSnapshot(namespace))?.leases ?? [])];
    for (let i = 0; i < 50; i += 1) {
      leases = leases.map((lease) => ({ ...lease, expiresAt: (lease.expiresAt ?? 0) + 1 }));
      await appendLeases();
    }
    const loaded = (await store.loadSnapshot(namespace))?.leases;
    await store.close();
    const after = await tableStatistics(observer);
    const since = (count: 'updated' | 'hot' | 'moved'): number =>
      (after.lease?.[count] ?? 0) - (before.lease?.[count] ?? 0);
    expect(since('updated')).toBe(40 * 50);
    expect(since('hot')).toBeGreaterThan(0);
    // Whoever holds a snapshot (an ANALYZE does) keeps pages full, and rows then move; an index never makes them.
    expect(since('updated') - since('hot') - since('moved')).toBe(0);
    expect(after.lease_write_set?.updated).toBe(before.lease_write_set?.updated);
    expect(loaded).toEqual(leases);
  });

  it('sends a write set again to a server that may have lost it', async () => {
    await open();
    const lease = sampleLease();
    const { identity } = await store.readGate(namespace);
    const grant = sampleBatch(namespace, head, { leases: [lease], identity });
    expect((await store.append(grant)).outcome).toBe('appended');
    await raw.query('DELETE FROM writ.lease WHERE lease_id = $1', [lease.leaseId]);
    await raw.query('DELETE FROM writ.lease_write_set WHERE lease_id = $1', [lease.leaseId]);
    const ended = sampleEnded(lease);
    const end = sampleBatch(namespace, headAfter(grant.events), { leases: [ended] });
    expect((await store.append(end)).outcome).toBe('appended');
    expect((await store.loadLeases(namespace, [lease.leaseId])).records).toEqual([ended]);
    await raw.query('DELETE FROM writ.lease_write_set WHERE lease_id = $1', [lease.leaseId]);
    await expect(store.loadLeases(namespace, [lease.leaseId])).rejects.toMatchObject({ kind: 'bug' });
  });

  it('with an old snapshot held open, only rows that were replaced are left behind (F25)', async () => {
    await open();
    await raw.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await raw.query('SELECT count(*) FROM writ.event');
    await store.close();
    const before = await tableStatistics(observer);
    store = createPostgresStore({ url: database.url, notify: false });
    const { identity } = await store.readGate(namespace);
    let last = head;
    const cycles = 150;
    for (let i = 0; i < cycles; i += 1) {
      const lease = sampleLease();
      const grant = sampleBatch(namespace, last, {
        identity,
        leases: [lease],
        runs: i === 0 ? [sampleRun()] : [],
        keys: [sampleKey({ key: `k-${i}` })],
        newKeys: [{ scope: 'run:run-1', key: `k-${i}` }],
      });
      expect((await store.append(grant)).outcome).toBe('appended');
      const release = sampleBatch(namespace, headAfter(grant.events), { identity, leases: [sampleEnded(lease)] });
      expect((await store.append(release)).outcome).toBe('appended');
      last = headAfter(release.events);
    }
    await store.close();
    const after = await tableStatistics(observer);
    const dead = (table: string): number => (after[table]?.dead ?? 0) - (before[table]?.dead ?? 0);
    expect(dead('lease')).toBeLessThanOrEqual(cycles);
    for (const table of ['event', 'event_request', 'lease_write_set', 'key_binding', 'run', 'map_version']) {
      expect([table, dead(table)]).toEqual([table, 0]);
    }
  });
});

interface TableStatistics {
  readonly updated: number;
  readonly hot: number;
  /** Updates that found no room on their page. Before Postgres 16, which counts them, all that were not HOT. */
  readonly moved: number;
  readonly dead: number;
}

/** Backends report what they counted at the latest when they end; so the store must be closed by now. */
async function tableStatistics(client: pg.Client): Promise<Record<string, TableStatistics>> {
  const backends = `SELECT FROM pg_stat_activity AS a WHERE a.datname = current_database() AND a.application_name = 'writ'`;
  while (((await client.query(backends)).rowCount ?? 0) > 0) await pause(5);
  const { rows } = await client.query<{ relname: string; updated: string; hot: string; moved: string; dead: string }>(
    `SELECT relname, n_tup_upd AS updated, n_tup_hot_upd AS hot, n_dead_tup AS dead,
            COALESCE((to_jsonb(s) ->> 'n_tup_newpage_upd')::bigint, n_tup_upd - n_tup_hot_upd) AS moved
     FROM pg_stat_all_tables AS s
     WHERE schemaname = 'writ' ORDER BY relname`,
  );
  const numbers = rows.map((row) => [
    row.relname,
    { updated: Number(row.updated), hot: Number(row.hot), moved: Number(row.moved), dead: Number(row.dead) },
  ]);
  return Object.fromEntries(numbers) as Record<string, TableStatistics>;
}

/** An error with its causes and all properties, as a careless logger would write it. */
function inspectDeeply(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const properties = Object.getOwnPropertyNames(error).map((name) =>
    String((error as unknown as Record<string, unknown>)[name]),
  );
  return [error.message, error.stack, ...properties, error.cause === undefined ? '' : inspectDeeply(error.cause)].join(
    '\n',
  );
}

describe('postgres store on a server that comes and goes', () => {
  let server: PrivatePostgres;
  let store: Store;
  const namespace = 'default';

  beforeAll(async () => {
    server = await startPrivatePostgres();
    await migrate(server.url, { log });
    store = createPostgresStore({ url: server.url });
    expect((await store.append(sampleBatch(namespace, null))).outcome).toBe('appended');
  });
  afterAll(async () => {
    await store?.close();
    await server?.stop();
  });

  async function headOnceBack(): Promise<Head | null> {
    for (;;) {
      try {
        return (await store.readGate(namespace)).head;
      } catch (error) {
        expect(error).toMatchObject({ kind: 'unavailable' });
        await pause(20);
      }
    }
  }

  it('loses nothing acknowledged over kill -9, and goes on with the same store (P8)', async () => {
    for (let round = 0; round < 2; round += 1) {
      let head = await headOnceBack();
      const { identity } = await store.readGate(namespace);
      let running = true;
      const load = (async () => {
        while (running) {
          const batch = sampleBatch(namespace, head);
          const { outcome } = await store.append(batch);
          expect(outcome).toBe('appended');
          head = headAfter(batch.events);
        }
      })().catch((error: unknown) => error);
      await pause(100 + 50 * round);
      await server.kill9();
      expect(await load).toMatchObject({
        name: 'StoreError',
        kind: expect.stringMatching(/unknown_outcome|unavailable/),
      });
      running = false;
      await expect(store.append(sampleBatch(namespace, head))).rejects.toMatchObject({ name: 'StoreError' });
      await server.restart();
      const after = await headOnceBack();
      // The last acknowledged one, or one more whose answer was lost.
      expect((after?.revision ?? 0) - (head?.revision ?? 0)).toBeOneOf([0, 1]);
      const acknowledged = await store.readEvent(namespace, head?.revision ?? 0);
      expect(acknowledged?.hash).toBe(head?.hash);
      const again = (await store.readGate(namespace)).identity;
      expect(again).toEqual({ ...identity, postmasterStart: again.postmasterStart });
      expect(again.postmasterStart).toBeGreaterThan(identity.postmasterStart);
      const stale = await store.append(sampleBatch(namespace, after, { identity }));
      expect(stale).toMatchObject({ outcome: 'identity', gate: { identity: again } });
    }
  });

  it('unknown outcome when the wait for a synchronous standby is cancelled: committed, with a warning', async () => {
    const admin = await connectRaw(server.url);
    const standby = async (names: string): Promise<void> => {
      await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await admin.query('SELECT pg_reload_conf()');
    };
    const head = await headOnceBack();
    await standby('nobody');
    try {
      let tries: Head | null = head;
      let outcome: unknown = null;
      // The first ones may still pass, until every process has read the setting.
      while (outcome === null) {
        const batch = sampleBatch(namespace, tries);
        let answered = false;
        const answer = store
          .append(batch)
          .catch((error: unknown) => error)
          .finally(() => {
            answered = true;
          });
        const pid = await waitingBackend(admin, 'SyncRep', () => answered);
        if (pid === 0) tries = headAfter(batch.events);
        else {
          await admin.query('SELECT pg_cancel_backend($1)', [pid]);
          outcome = await answer;
          expect(await store.readEvent(namespace, headAfter(batch.events).revision)).not.toBeNull();
        }
      }
      expect(outcome).toMatchObject({
        kind: 'unknown_outcome',
        message: expect.stringContaining('synchronous replication'),
      });
    } finally {
      await standby('');
      await admin.end();
    }
  });
});
