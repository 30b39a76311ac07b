import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { CallContext } from '../../src/services/api.js';
import { as, createRun, granted, ISSUER, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { CREDENTIALS_MAP, check, env, hold, issue, verifyOffline } from '../support/issued-credentials.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: CREDENTIALS_MAP });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

const held = (resource?: string, action?: string, ttl?: number) => hold(a.api, resource, action, ttl);

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
