import { decodeProtectedHeader } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import { acquireInput, as, eventually, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { CREDENTIALS_MAP, check, env, hold, issue, verifyOffline } from '../support/issued-credentials.js';
import { createTestDatabase } from '../support/postgres.js';
import { latch } from '../support/target-servers.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;
let sql: pg.Client;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: CREDENTIALS_MAP });
  ({ a, b } = pair);
  sql = new pg.Client({ connectionString: pair.database.url });
  await sql.connect();
});

afterAll(async () => {
  await sql?.end();
  await pair?.stop();
});

const held = (resource?: string, action?: string, ttl?: number) => hold(a.api, resource, action, ttl);

describe('signing keys', () => {
  const age = (by: number) =>
    sql.query(
      'UPDATE writ.signing_key SET created_at_us = created_at_us - $1, activated_at_us = activated_at_us - $1',
      [by * SECOND],
    );

  test('F20: are shared by replicas, and do not multiply at starts, also when many start at once', async () => {
    const fresh = await createTestDatabase();
    try {
      const first = await Promise.all(Array.from({ length: 4 }, () => startReplica({ url: fresh.url })));
      const before = await first[0]?.api.listSigningKeys();
      expect(before?.map(({ state }) => state).toSorted()).toEqual(['current', 'next']);
      await Promise.all(first.map((replica) => replica.stop()));
      for (let start = 0; start < 50; start += 1) {
        const replica = await startReplica({ url: fresh.url });
        if (start % 10 === 9) expect(await replica.api.listSigningKeys()).toEqual(before);
        await replica.stop();
      }
    } finally {
      await fresh.drop();
    }
  }, 240_000);

  test('F20: rotate by the schedule, once, although two replicas see that it is due', async () => {
    const inState = async (state: string) =>
      (await b.api.listSigningKeys()).filter((key) => key.state === state).map(({ keyId }) => keyId);
    const [next] = await inState('next');
    await age(31 * 86_400);
    await eventually(
      () => inState('current'),
      ([current]) => current === next,
    );
    const recorded = async () =>
      (
        await sql.query(`SELECT 1 FROM writ.event WHERE kind = 'signing_keys_changed' AND body LIKE $1`, [
          `%{"keyId":"${next}","state":"current"}%`,
        ])
      ).rows.length;
    expect(await eventually(recorded, (n) => n > 0)).toBe(1);
    expect(await inState('next')).toHaveLength(1);
  });

  test('a rotation and a retirement are in the log, with who and why; what a retired key signed is refused', async () => {
    const lease = await held();
    const signed = async () => {
      const { token } = await issue(a.api, lease);
      return { token, kid: decodeProtectedHeader(token).kid ?? '' };
    };
    // The other replica may just have rotated: until this one has read so, it signs with the key before.
    const current = (await b.api.listSigningKeys()).find(({ state }) => state === 'current')?.keyId;
    const { token, kid } = await eventually(signed, ({ kid: by }) => by === current);
    await expect(a.api.retireSigningKey(as('admin'), { keyId: kid, reason: 'x' })).rejects.toMatchObject({
      reason: 'SIGNING_KEY_IN_USE',
    });
    const lost = `the laptop ${env()} was lost`;
    await a.api.rotateSigningKey(as('admin'), { reason: lost, force: true });
    for (const replica of [a, b]) expect((await check(replica.api, token, lease)).reason).toBe('ok');
    await a.api.retireSigningKey(as('admin'), { keyId: kid, reason: `${lost}, for good` });
    // On every replica at once, also where its signature was verified and remembered before.
    expect((await check(b.api, token, lease)).reason).toBe('unknown_key');
    expect((await check(a.api, token, lease)).reason).toBe('unknown_key');
    expect((await b.api.introspectCredential(as('target'), { token })).value).toEqual({ active: false });
    const query = { runId: '', leaseId: '', resource: '', requestId: '', afterRevision: 0, newestFirst: false };
    const recorded = await eventually(
      async () => {
        const page = { size: 100, token: '' };
        const kinds = ['signing_keys_changed'];
        const { items } = await b.api.listEvents(as('auditor'), { ...query, kinds, page });
        const told = items.filter(({ actor }) => actor === 'admin');
        return told.flatMap(({ texts }) => texts.map(({ text }) => text)).filter((text) => text.startsWith(lost));
      },
      (texts) => texts.length >= 2,
    );
    expect(recorded).toEqual([lost, `${lost}, for good`]);
  });

  test('are listed as they are, also where an older reading is still on its way', async () => {
    const [read, goOn] = [latch(), latch()];
    let isHeld = false;
    const slow = await startReplica({
      url: pair.database.url,
      wrap: (store) => ({
        ...store,
        async readSigningKeys() {
          const keys = await store.readSigningKeys();
          if (!isHeld) return keys;
          read.open();
          await goOn.promise;
          return keys;
        },
      }),
    });
    try {
      isHeld = true;
      const older = slow.api.listSigningKeys();
      await read.promise;
      isHeld = false;
      await a.api.rotateSigningKey(as('admin'), { reason: 'a test', force: true });
      const listed = slow.api.listSigningKeys();
      goOn.open();
      expect(await listed).toEqual(await b.api.listSigningKeys());
      const keyId = (await older).find(({ state }) => state === 'current')?.keyId ?? '';
      expect((await listed).find((key) => key.keyId === keyId)?.state).toBe('previous');
      // Of those that no longer sign only a few may be published.
      await a.api.retireSigningKey(as('admin'), { keyId, reason: 'a test' });
    } finally {
      goOn.open();
      await slow.stop();
    }
  });

  test('R4: what a key signed that is retired while a tracked write is let in is refused', async () => {
    const lease = await held(`pointer/${env()}`, 'set');
    const { token } = await issue(a.api, lease);
    const kid = decodeProtectedHeader(token).kid ?? '';
    await a.api.rotateSigningKey(as('admin'), { reason: 'a test', force: true });
    // The check has been decided, and waits to be written down, as long as somebody else has this lock.
    await sql.query('BEGIN; LOCK TABLE writ.admission IN EXCLUSIVE MODE');
    try {
      const checked = check(a.api, token, lease, { requestId: `let-in-${kid}` });
      await eventually(
        async () =>
          (await sql.query(`SELECT 1 FROM pg_locks WHERE relation = 'writ.admission'::regclass AND NOT granted`)).rows,
        (waiting) => waiting.length > 0,
      );
      const retired = b.api.retireSigningKey(as('admin'), { keyId: kid, reason: 'a test' });
      await eventually(
        async () =>
          (await sql.query(`SELECT 1 FROM writ.signing_key WHERE key_id = $1 AND state = 'retired'`, [kid])).rows,
        (rows) => rows.length > 0,
      );
      await sql.query('COMMIT');
      await retired;
      expect(await checked).toMatchObject({ allowed: false, reason: 'unknown_key' });
      // Fail closed: a repetition of the check may have been answered before, so it is not taken back.
      const { value } = await b.api.getRun(as('operator'), { runId: lease.runId });
      expect(value.openWrites).toHaveLength(1);
    } finally {
      await sql.query('ROLLBACK');
    }
  });

  test('are encrypted at rest, and destroyed with their retirement', async () => {
    const { rows } = await sql.query<{ state: string; sealed_private: string | null }>(
      'SELECT state, sealed_private FROM writ.signing_key',
    );
    for (const { state, sealed_private: sealed } of rows) {
      if (state === 'retired') expect(sealed).toBeNull();
      else expect(sealed?.split('.')).toHaveLength(5);
    }
    await expect(
      sql.query(`UPDATE writ.signing_key SET state = 'current', activated_at_us = created_at_us WHERE state = 'next'`),
    ).rejects.toMatchObject({ constraint: 'signing_key_one_current' });
  });

  test('without a key-encryption key nothing is issued, and all else works; with a wrong one too', async () => {
    const lease = await held();
    const { token } = await issue(a.api, lease);
    for (const [key, reason] of [
      [null, 'CREDENTIALS_OFF'],
      [new Uint8Array(32).fill(9), 'SIGNING_KEYS_SEALED'],
    ] as const) {
      const other = await startReplica({ url: pair.database.url, keyEncryptionKey: key });
      try {
        await expect(issue(other.api, lease)).rejects.toMatchObject({ reason, faultClass: 'failed_precondition' });
        const input = acquireInput(lease.runId, [write(`release/${env()}`)], { audiences: ['target'] });
        await expect(other.api.acquireWriteSet(as('runner'), input)).rejects.toMatchObject({ reason });
        expect((await check(other.api, token, lease)).reason).toBe('ok');
        expect((await verifyOffline(other.api, token)).payload.sub).toBe(lease.runId);
      } finally {
        await other.stop();
      }
    }
  });
});
