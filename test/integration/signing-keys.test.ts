import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/fault.js';
import type { SigningKey } from '../../src/domain/signing-keys.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import type { Store } from '../../src/storage/store.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';

let database: TestDatabase;
let store: Store;
let sql: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  store = createPostgresStore({ url: database.url, prepared: PREPARED });
  sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
});

beforeEach(() => sql.query('DELETE FROM writ.signing_key'));

afterAll(async () => {
  await sql?.end();
  await store?.close();
  await database?.drop();
});

function key(state: SigningKey['state'], now: number, more: Partial<SigningKey> = {}): SigningKey {
  const hasSigned = state === 'current' || state === 'previous';
  return {
    keyId: createHash('sha256').update(randomBytes(8)).digest('base64url'),
    publicJwk: '{}',
    sealedPrivate: state === 'retired' ? null : 'a.b.c.d.e',
    state,
    createdAt: now,
    activatedAt: hasSigned ? now : null,
    replacedAt: state === 'previous' ? now : null,
    retiredAt: state === 'retired' ? now : null,
    ...more,
  };
}

describe('the stored set of signing keys (F20)', () => {
  it('begins empty, with the clock of the database', async () => {
    const { keys, now } = await store.readSigningKeys();
    expect(keys).toEqual([]);
    expect(Math.abs(now / 1_000 - Date.now())).toBeLessThan(600_000);
  });

  it('comes back as it was written, every field', async () => {
    const written = await store.changeSigningKeys((_, now) =>
      (['next', 'current', 'previous', 'retired'] as const).map((state) => key(state, now)),
    );
    const byId = (keys: readonly SigningKey[]) => keys.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1));
    expect(byId((await store.readSigningKeys()).keys)).toEqual(byId(written));
  });

  it('is decided by one at a time: of many that find it empty, one fills it', async () => {
    const fill = (keys: readonly SigningKey[], now: number) =>
      keys.length > 0 ? [] : [key('current', now), key('next', now)];
    // Connected first, so that they begin at one time.
    const stores = Array.from({ length: 8 }, () => createPostgresStore({ url: database.url, prepared: PREPARED }));
    await Promise.all(stores.map((one) => one.readSigningKeys()));
    for (let round = 0; round < 5; round += 1) {
      await sql.query('DELETE FROM writ.signing_key');
      const made = await Promise.all(stores.map((one) => one.changeSigningKeys(fill)));
      expect(made.filter((changes) => changes.length > 0)).toHaveLength(1);
      expect((await store.readSigningKeys()).keys).toHaveLength(2);
    }
    await Promise.all(stores.map((one) => one.close()));
  });

  it('changes hands in one go, whatever the order', async () => {
    const [current, next] = await store.changeSigningKeys((_, now) => [key('current', now), key('next', now)]);
    await store.changeSigningKeys((_, now) => [
      key('next', now),
      { ...(next as SigningKey), state: 'current', activatedAt: now },
      { ...(current as SigningKey), state: 'previous', replacedAt: now },
    ]);
    const states = (await store.readSigningKeys()).keys.map(({ state }) => state);
    expect(states.toSorted()).toEqual(['current', 'next', 'previous']);
  });

  it('stays as it was when the decision is refused, or breaks what must hold', async () => {
    await store.changeSigningKeys((_, now) => [key('current', now)]);
    const before = await store.readSigningKeys();
    const refusal = new Fault('failed_precondition', 'SIGNING_KEY_TOO_NEW', 'not yet');
    const refused = store.changeSigningKeys(() => {
      throw refusal;
    });
    await expect(refused).rejects.toBe(refusal);
    await expect(store.changeSigningKeys((_, now) => [key('next', now), key('current', now)])).rejects.toMatchObject({
      kind: 'bug',
    });
    await expect(
      store.changeSigningKeys((_, now) => [key('next', now, { sealedPrivate: null })]),
    ).rejects.toMatchObject({ kind: 'bug' });
    expect((await store.readSigningKeys()).keys).toEqual(before.keys);
  });

  it('remembers the last hundred that have retired', async () => {
    await store.changeSigningKeys((_, now) =>
      Array.from({ length: 130 }, (_, i) => key('retired', now, { retiredAt: now + i })),
    );
    const { keys } = await store.readSigningKeys();
    expect(keys).toHaveLength(100);
    const retired = keys.map(({ retiredAt, createdAt }) => (retiredAt ?? 0) - createdAt);
    expect(Math.min(...retired)).toBe(30);
  });
});
