import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { CallContext, IssuedCredential, WritApi } from '../../src/services/api.js';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  granted,
  ISSUER,
  leaseOf,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase } from '../support/postgres.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer }, annotate: { access: write, change_class: derived } } }
  - { pattern: "pointer/{name}", owner_service: [target], actions: { set: { access: write, concurrency: lease, tracked: true } } }
  - { pattern: "tenant/{id...}", actions: { repair: { access: write, concurrency: lease, change_class: shared_document } } }
`;

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;
let sql: pg.Client;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a, b } = pair);
  sql = new pg.Client({ connectionString: pair.database.url });
  await sql.connect();
});

afterAll(async () => {
  await sql?.end();
  await pair?.stop();
});

let next = 0;
const env = (): string => `env-${++next}`;

async function held(resource = `release/${env()}`, action = 'promote', ttl = 120 * SECOND): Promise<Lease> {
  return granted(a.api, await createRun(a.api), [write(resource, action)], { ttl });
}

async function issue(
  api: WritApi,
  lease: { runId: string; leaseId: string | null },
  more: { audience?: string; confirmation?: Confirmation; context?: CallContext } = {},
): Promise<IssuedCredential> {
  const { value } = await api.issueCredential(more.context ?? as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: more.audience ?? 'target',
    confirmation: more.confirmation ?? null,
    requestId: '',
  });
  if (value.credential === null) throw new Error(`refused: ${JSON.stringify(value.refusal)}`);
  return value.credential;
}

async function check(
  api: WritApi,
  credential: string,
  lease: Lease,
  more: {
    resource?: string;
    action?: string;
    token?: number;
    presenter?: Confirmation;
    as?: CallContext;
    requestId?: string;
  } = {},
) {
  const entry = lease.entries[0];
  const { value } = await api.checkFence(more.as ?? as('target'), {
    leaseId: '',
    credential,
    presenter: more.presenter ?? null,
    presenterRunId: '',
    writes: [
      {
        resource: more.resource ?? entry?.resource ?? '',
        action: more.action ?? entry?.actions[0] ?? '',
        token: more.token ?? 0,
        observedVersion: null,
      },
    ],
    requestId: more.requestId ?? '',
  });
  return { ...value, reason: value.results[0]?.reason };
}

const jwks = async (api: WritApi) => JSON.parse((await api.getKeys()).jwks) as JSONWebKeySet;

/** As a verifier that was told nothing but the issuer's keys. */
async function verifyOffline(api: WritApi, token: string) {
  return jwtVerify(token, createLocalJWKSet(await jwks(api)), {
    algorithms: ['ES256'],
    issuer: ISSUER,
    audience: 'target',
    typ: 'at+jwt',
    requiredClaims: ['exp', 'iat', 'jti', 'sub'],
    maxTokenAge: 60,
    clockTolerance: 5,
  });
}

describe('a credential', () => {
  test('C9: says who may write what, where and until when, and is verified by the published keys', async () => {
    const lease = await held();
    const issued = await issue(a.api, lease);
    expect(decodeProtectedHeader(issued.token)).toEqual({ alg: 'ES256', kid: expect.any(String), typ: 'at+jwt' });
    const { payload } = await verifyOffline(b.api, issued.token);
    const [entry] = lease.entries;
    expect(payload).toEqual({
      iss: ISSUER,
      aud: 'target',
      sub: lease.runId,
      client_id: 'runner',
      act: { sub: 'runner' },
      jti: issued.jti,
      iat: expect.any(Number),
      exp: issued.expiresAt / SECOND,
      txn: expect.stringMatching(/^[0-9a-f]{32}$/),
      namespace: 'default',
      lease_id: lease.leaseId,
      authorization_details: [
        {
          type: 'writ_write_set',
          locations: ['target'],
          actions: ['promote'],
          resources: [entry?.resource],
          fence: String(entry?.token),
          scope: 'exact',
          concurrency: 'lease',
        },
      ],
    });
    expect(payload.txn).not.toBe(lease.leaseId);
  });

  test('is checked on any replica as its lease is, and by its target only', async () => {
    const lease = await held();
    const { token } = await issue(a.api, lease);
    expect(await check(b.api, token, lease)).toMatchObject({ allowed: true, reason: 'ok' });
    expect(await check(b.api, token, lease, { action: 'annotate' })).toMatchObject({ reason: 'action_not_allowed' });
    expect(await check(b.api, token, lease, { resource: 'release/other' })).toMatchObject({ reason: 'not_covered' });
    expect(await check(b.api, token, lease, { token: 1 })).toMatchObject({ reason: 'stale_token' });
    expect(await check(b.api, token, lease, { as: as('target', { name: 'another' }) })).toMatchObject({
      allowed: false,
      reason: 'wrong_audience',
    });
  });

  test('P3: once release, revoke or stop has returned, no replica takes it', async () => {
    const ends = {
      released: (lease: Lease) =>
        a.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null }),
      revoked: (lease: Lease) => a.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'a test' }),
      run_stopped: (lease: Lease) => a.api.stopRun(as('operator'), { runId: lease.runId, reason: 'a test' }),
    };
    for (const [reason, end] of Object.entries(ends)) {
      const lease = await held();
      const { token } = await issue(b.api, lease);
      expect((await check(b.api, token, lease)).allowed).toBe(true);
      await end(lease);
      expect(await check(b.api, token, lease)).toMatchObject({ allowed: false, reason });
      expect((await b.api.introspectCredential(as('target'), { token })).value).toEqual({ active: false });
    }
  });

  test('F17, P3: racing checks and revocations over two replicas: nothing is allowed after the revoke returned', async () => {
    for (let round = 0; round < 25; round += 1) {
      const lease = await held();
      const { token, jti } = await issue(a.api, lease);
      const subject = (
        [
          { kind: 'jti', jti },
          { kind: 'lease', leaseId: lease.leaseId },
          { kind: 'run', runId: lease.runId },
        ] as const
      )[round % 3] as { kind: 'jti'; jti: string };
      let revoked = false;
      const late: boolean[] = [];
      const checks = Array.from({ length: 6 }, async () => {
        const began = revoked;
        const { allowed } = await check(b.api, token, lease);
        if (began) late.push(allowed);
      });
      await a.api.revokeCredential(as('operator'), { subject, reason: 'leaked' });
      revoked = true;
      const verdict = await check(b.api, token, lease);
      expect(verdict.reason).toBe('credential_revoked');
      late.push(verdict.allowed);
      await Promise.all(checks);
      expect(late).not.toContain(true);
    }
  });

  test('a revocation outlives a restart', async () => {
    const lease = await held();
    const { token } = await issue(a.api, lease);
    await a.api.revokeCredential(as('runner'), {
      subject: { kind: 'lease', leaseId: lease.leaseId },
      reason: 'leaked',
    });
    const late = await startReplica({ url: pair.database.url });
    try {
      expect((await check(late.api, token, lease)).reason).toBe('credential_revoked');
      expect((await late.api.getLease(as('operator'), { leaseId: lease.leaseId })).value.credentialsUntil).toBe(
        decodeJwt(token).exp === undefined ? 0 : (decodeJwt(token).exp as number) * SECOND,
      );
    } finally {
      await late.stop();
    }
  });

  test('binds to the certificate of the call by itself, or to the key that is named', async () => {
    const lease = await held();
    const certificate = 'c'.repeat(43);
    const context = as('runner');
    const withCertificate = { ...context, principal: { ...context.principal, certificateThumbprint: certificate } };
    const own = await issue(a.api, lease, { context: withCertificate });
    expect(own.boundTo).toEqual({ kind: 'x5t#S256', thumbprint: certificate });
    expect(decodeJwt(own.token).cnf).toEqual({ 'x5t#S256': certificate });
    expect((await check(b.api, own.token, lease)).reason).toBe('not_bound');
    expect((await check(b.api, own.token, lease, { presenter: own.boundTo as Confirmation })).reason).toBe('ok');
    const key: Confirmation = { kind: 'jkt', thumbprint: 'd'.repeat(43) };
    const named = await issue(a.api, lease, { context: withCertificate, confirmation: key });
    expect([named.tokenType, named.boundTo]).toEqual(['DPoP', key]);
    expect((await check(b.api, named.token, lease, { presenter: own.boundTo as Confirmation })).reason).toBe(
      'binding_mismatch',
    );
  });

  test('of a large write set is a digest, which the check resolves', async () => {
    const paths = Array.from({ length: 30 }, (_, i) => `tenant/${env()}/${i}`);
    const lease = await granted(
      a.api,
      await createRun(a.api),
      paths.map((path) => write(path, 'repair')),
      { ttl: 120 * SECOND },
    );
    const { token } = await issue(a.api, lease);
    expect(decodeJwt(token).authorization_details).toEqual([
      { type: 'writ_write_set', locations: ['target'], digest: expect.stringMatching(/^sha-256:/) },
    ]);
    expect((await check(b.api, token, lease, { resource: paths[29] as string })).allowed).toBe(true);
    expect((await check(b.api, token, lease, { resource: 'tenant/other' })).reason).toBe('not_covered');
  });

  test('C4: without a lease it lets the run propose, and write nothing', async () => {
    const runId = await createRun(a.api);
    const lease = await held();
    const { token } = await issue(a.api, { runId, leaseId: null });
    expect(decodeJwt(token)).not.toHaveProperty('lease_id');
    expect(decodeJwt(token).authorization_details).toEqual([
      { type: 'writ_propose', locations: ['target'], resources: [] },
    ]);
    expect(await check(b.api, token, lease)).toMatchObject({ allowed: false, reason: 'no_write_authority' });
    expect((await b.api.introspectCredential(as('target'), { token })).value.active).toBe(true);
  });
});

describe('issuing', () => {
  test('with the grant: one per audience, and anew when the acquire is repeated by its key', async () => {
    const runId = await createRun(a.api);
    const input = acquireInput(runId, [write(`release/${env()}`, 'promote')], {
      ttl: 60 * SECOND,
      audiences: ['target', 'stranger'],
    });
    const first = (await a.api.acquireWriteSet(as('runner'), input)).value;
    const again = (await b.api.acquireWriteSet(as('runner'), input)).value;
    if (first.kind !== 'lease' || again.kind !== 'lease') throw new Error('no lease');
    expect(first.credentials).toMatchObject([
      { audience: 'target', refusal: null, credential: { audience: 'target' } },
      { audience: 'stranger', credential: null, refusal: { kind: 'audience_not_allowed' } },
    ]);
    expect(again.lease.leaseId).toBe(first.lease.leaseId);
    const [one, two] = [first, again].map(({ credentials }) => decodeJwt(credentials[0]?.credential?.token ?? ''));
    expect(one?.jti).not.toBe(two?.jti);
    expect(one?.authorization_details).toEqual(two?.authorization_details);
  });

  test('with a grant that was waited for', async () => {
    const resource = `release/${env()}`;
    const holder = await held(resource);
    const runId = await createRun(b.api);
    const input = acquireInput(runId, [write(resource, 'promote')], {
      ttl: 60 * SECOND,
      wait: 20 * SECOND,
      audiences: ['target'],
    });
    const waiting = b.api.acquireWriteSet(as('runner'), input);
    const query = {
      runId,
      resource: '',
      lockDelayed: false,
      states: ['waiting'] as const,
      page: { size: 1, token: '' },
    };
    await eventually(
      async () => (await a.api.listLeases(as('operator'), query)).value.items.length,
      (n) => n === 1,
    );
    await a.api.releaseLease(as('runner'), { runId: holder.runId, leaseId: holder.leaseId, acquireKey: null });
    const { value } = await waiting;
    const lease = leaseOf(value);
    const token = value.kind === 'lease' ? (value.credentials[0]?.credential?.token ?? '') : '';
    expect((await check(a.api, token, lease)).allowed).toBe(true);
  });

  test('P10: a lease that is too short gets none, and is told why; it is held all the same', async () => {
    const input = acquireInput(await createRun(a.api), [write(`release/${env()}`, 'promote')], {
      ttl: 6 * SECOND,
      audiences: ['target'],
    });
    const { value } = await a.api.acquireWriteSet(as('runner'), input);
    expect(value).toMatchObject({ kind: 'lease', credentials: [{ credential: null, refusal: { kind: 'too_short' } }] });
    leaseOf(value);
  });

  test('is refused to others than the creator of the run', async () => {
    const lease = await held();
    await expect(issue(a.api, lease, { context: as('runner', { name: 'stranger' }) })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });

  test('bad input is refused by field', async () => {
    const lease = await held();
    const violations = (...fields: string[]) => ({ details: { violations: fields.map((field) => ({ field })) } });
    await expect(issue(a.api, lease, { audience: '' })).rejects.toMatchObject(violations('audience'));
    const short: Confirmation = { kind: 'jkt', thumbprint: 'x' };
    await expect(issue(a.api, lease, { confirmation: short })).rejects.toMatchObject(violations('confirmation.jkt'));
    const both = { leaseId: lease.leaseId, credential: 'x', presenterRunId: '', writes: [], requestId: '' };
    await expect(a.api.checkFence(as('target'), both)).rejects.toMatchObject(violations('lease_id', 'writes'));
    const audiences = Array.from({ length: 17 }, (_, i) => `t${i}`);
    await expect(
      a.api.acquireWriteSet(as('runner'), acquireInput(lease.runId, [write('release/x')], { audiences })),
    ).rejects.toMatchObject(violations('audiences'));
  });

  test('A3: what is secret about it is neither in the log nor in the database', async () => {
    const lease = await held();
    const { token, jti } = await issue(a.api, lease);
    const { rows } = await sql.query<{ kind: string; body: string }>(
      `SELECT kind, body FROM writ.event WHERE lease_id = $1 AND kind = 'credentials_issued'`,
      [lease.leaseId],
    );
    expect(rows).toHaveLength(1);
    expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({ credentials: [{ audience: 'target', jti }] });
    const { rows: found } = await sql.query(`SELECT 1 FROM writ.event WHERE body LIKE $1`, [
      `%${token.split('.')[2]}%`,
    ]);
    expect(found).toEqual([]);
  });
});

describe('introspection (RFC 7662)', () => {
  test('tells a target of its own, a runner of its own, an operator of all; others nothing', async () => {
    const lease = await held();
    const { token, jti } = await issue(a.api, lease);
    const ask = async (context: CallContext) => (await b.api.introspectCredential(context, { token })).value;
    const known = { active: true, claims: { jti, aud: 'target', sub: lease.runId, token_type: 'Bearer' } };
    expect(await ask(as('target'))).toMatchObject(known);
    expect(await ask(as('runner'))).toMatchObject(known);
    expect(await ask(as('operator'))).toMatchObject(known);
    expect(await ask(as('target', { name: 'another' }))).toEqual({ active: false });
    expect(await ask(as('runner', { name: 'another' }))).toEqual({ active: false });
    // Whatever else it may be: what is no token of ours is not active, and no error.
    for (const other of [`${token}x`, 'x'.repeat(20_000), 'é', '..'])
      expect((await b.api.introspectCredential(as('target'), { token: other })).value).toEqual({ active: false });
  });
});

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
    const { token } = await issue(a.api, lease);
    const kid = decodeProtectedHeader(token).kid ?? '';
    await expect(a.api.retireSigningKey(as('admin'), { keyId: kid, reason: 'x' })).rejects.toMatchObject({
      reason: 'SIGNING_KEY_IN_USE',
    });
    await a.api.rotateSigningKey(as('admin'), { reason: 'a laptop was lost', force: true });
    for (const replica of [a, b]) expect((await check(replica.api, token, lease)).reason).toBe('ok');
    await a.api.retireSigningKey(as('admin'), { keyId: kid, reason: 'the same' });
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
        return items.filter(({ actor }) => actor === 'admin');
      },
      (events) => events.length >= 2,
    );
    expect(recorded.flatMap(({ texts }) => texts.map(({ text }) => text))).toEqual(['a laptop was lost', 'the same']);
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
