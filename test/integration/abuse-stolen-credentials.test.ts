import { createHash } from 'node:crypto';
import { generateProof } from 'dpop';
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, type JSONWebKeySet } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeToken } from '../../src/auth/tokens.js';
import { type CredentialRefused, createCredentialVerifier } from '../../src/clients/target/index.js';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { CallContext } from '../../src/services/api.js';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  freshKey,
  granted,
  ISSUER,
  leaseOf,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

// What somebody can do with a genuine credential, lease id or fencing token that is not theirs, or not theirs any more;
// issued by one replica and presented to another.

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "draft/{id}", authority: propose, actions: { edit: { access: write } } }
`;

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a, b } = pair);
  await a.api.createNamespace(as('admin'), { name: 'other' });
  await a.api.putConflictMap(as('admin', { namespace: 'other' }), {
    document: MAP,
    expectedVersion: 0,
    reason: 'a test',
    onLiveConflict: 'refuse',
  });
});

afterAll(async () => {
  await pair?.stop();
});

let serial = 0;
const resource = (): string => `release/env-${++serial}`;

async function hold(more: { context?: CallContext; resource?: string; forSeconds?: number } = {}): Promise<Lease> {
  const context = more.context ?? as('runner');
  const runId = await createRun(a.api, { context, forSeconds: more.forSeconds ?? 3_600 });
  const entries = [write(more.resource ?? resource(), 'promote')];
  return granted(a.api, runId, entries, { ttl: 120 * SECOND }, context);
}

async function issue(
  lease: { runId: string; leaseId: string | null },
  more: { audience?: string; confirmation?: Confirmation; context?: CallContext } = {},
): Promise<string> {
  const { value } = await a.api.issueCredential(more.context ?? as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: more.audience ?? 'target',
    confirmation: more.confirmation ?? null,
    requestId: '',
  });
  if (value.credential === null) throw new Error(`refused: ${JSON.stringify(value.refusal)}`);
  return value.credential.token;
}

/** One write, presented by credential or by lease id and token. */
async function check(
  what: {
    credential?: string;
    leaseId?: string;
    resource: string;
    token?: number;
    presenter?: Confirmation;
    run?: string;
  },
  context: CallContext = as('target'),
): Promise<string> {
  const { value } = await b.api.checkFence(context, {
    leaseId: what.leaseId ?? '',
    credential: what.credential ?? '',
    presenter: what.presenter ?? null,
    presenterRunId: what.run ?? '',
    writes: [{ resource: what.resource, action: 'promote', token: what.token ?? 0, observedVersion: null }],
    requestId: '',
  });
  const reason = value.results[0]?.reason ?? '';
  expect(value.allowed).toBe(reason === 'ok');
  return reason;
}

const isActive = async (token: string, context: CallContext = as('target')): Promise<boolean> =>
  (await b.api.introspectCredential(context, { token })).value.active;

const pathOf = (lease: Lease): string => lease.entries[0]?.resource ?? '';
const tokenOf = (lease: Lease): number => lease.entries[0]?.token ?? 0;

describe('a credential', () => {
  it('of another namespace means nothing here, also where the same resource is held', async () => {
    const there = as('runner', { namespace: 'other' });
    const path = resource();
    const elsewhere = await hold({ context: there, resource: path });
    const here = await hold({ resource: path });
    const token = await issue(elsewhere, { context: there });
    expect(await check({ credential: token, resource: path })).toBe('unknown_lease');
    expect(await check({ leaseId: elsewhere.leaseId, token: tokenOf(elsewhere), resource: path })).toBe(
      'unknown_lease',
    );
    expect(await check({ credential: token, resource: path }, as('target', { namespace: 'other' }))).toBe('ok');
    expect(await check({ credential: await issue(here), resource: path })).toBe('ok');
  });

  it('of another namespace is not active for who has a role in this one only', async () => {
    const there = as('runner', { namespace: 'other' });
    const token = await issue(await hold({ context: there }), { context: there });
    const local = (name: string): CallContext => ({
      ...as('target'),
      principal: { name: 'target', roles: new Set(), namespaceRoles: new Map([[name, new Set(['target'] as const)]]) },
    });
    expect(await isActive(token, local('default'))).toBe(false);
    expect(await isActive(token, local('other'))).toBe(true);
  });

  it('for another audience is worth nothing, whoever carries it on', async () => {
    const lease = await hold();
    const token = await issue(lease, { audience: 'svc:docs' });
    expect(await check({ credential: token, resource: pathOf(lease) })).toBe('wrong_audience');
    expect(await isActive(token)).toBe(false);
    expect(await check({ credential: token, resource: pathOf(lease) }, as('target', { name: 'svc:docs' }))).toBe('ok');
  });

  it('of one lease does not carry another’s token, nor reach its resources', async () => {
    const [mine, theirs] = [await hold(), await hold()];
    const token = await issue(mine);
    expect(await check({ credential: token, resource: pathOf(theirs) })).toBe('not_covered');
    expect(await check({ credential: token, resource: pathOf(theirs), token: tokenOf(theirs) })).toBe('not_covered');
    expect(await check({ credential: token, resource: pathOf(mine), token: tokenOf(theirs) })).toBe('stale_token');
    expect(await check({ credential: token, resource: pathOf(mine), run: theirs.runId })).toBe('wrong_holder');
  });

  it('without a lease lets nobody write, whatever token is put beside it', async () => {
    const lease = await hold();
    const token = await issue({ runId: lease.runId, leaseId: null });
    expect(await check({ credential: token, resource: pathOf(lease) })).toBe('no_write_authority');
    expect(await check({ credential: token, resource: pathOf(lease), token: tokenOf(lease) })).toBe(
      'no_write_authority',
    );
  });
});

describe('another kind of token', () => {
  it('is no credential: of a principal, of DPoP, of an issuer, a lease id, a key', async () => {
    const lease = await hold();
    const pair = await generateKeyPair('ES256', { extractable: true });
    const proof = await generateProof(pair, 'https://api.test/x', 'PUT');
    const { jwks } = await a.api.getKeys();
    for (const [token, reason] of [
      [makeToken().token, 'malformed'],
      [lease.leaseId, 'malformed'],
      [jwks, 'malformed'],
      [String(tokenOf(lease)), 'malformed'],
      [proof, 'header_not_allowed'],
    ] as const) {
      expect(await check({ credential: token, resource: pathOf(lease) })).toBe(reason);
      expect(await isActive(token)).toBe(false);
    }
  });
});

describe('a stolen credential', () => {
  const url = 'https://api.test/release';

  async function offlineReason(token: string, presented: object): Promise<string> {
    const keys = JSON.parse((await a.api.getKeys()).jwks) as JSONWebKeySet;
    const verifier = createCredentialVerifier({ issuer: ISSUER, audience: 'target', keys, dpop: {} });
    return verifier.verifyCredential(token, presented).then(
      () => 'ok',
      (error: CredentialRefused) => error.reason,
    );
  }

  it('that is bound to a certificate is worth nothing without its key', async () => {
    const lease = await hold();
    const thumbprintOf = (name: string) => createHash('sha256').update(name).digest('base64url');
    const own: Confirmation = { kind: 'x5t#S256', thumbprint: thumbprintOf('the run') };
    const thief: Confirmation = { kind: 'x5t#S256', thumbprint: thumbprintOf('the thief') };
    const token = await issue(lease, { confirmation: own });
    const path = pathOf(lease);
    expect(await check({ credential: token, resource: path })).toBe('not_bound');
    expect(await check({ credential: token, resource: path, presenter: thief })).toBe('binding_mismatch');
    expect(await check({ credential: token, resource: path, presenter: { ...own, kind: 'jkt' } })).toBe(
      'binding_mismatch',
    );
    expect(await check({ credential: token, resource: path, presenter: own })).toBe('ok');
    expect(await offlineReason(token, {})).toBe('not_bound');
    expect(await offlineReason(token, { certificateThumbprint: thief.thumbprint })).toBe('binding_mismatch');
    expect(await offlineReason(token, { certificateThumbprint: own.thumbprint })).toBe('ok');
  });

  it('that is bound to a DPoP key is worth nothing without it, nor with a proof of the thief’s', async () => {
    const lease = await hold();
    const [holder, thief] = [await generateKeyPair('ES256', { extractable: true }), await generateKeyPair('ES256')];
    const own: Confirmation = {
      kind: 'jkt',
      thumbprint: await calculateJwkThumbprint(await exportJWK(holder.publicKey)),
    };
    const token = await issue(lease, { confirmation: own });
    const path = pathOf(lease);
    expect(await check({ credential: token, resource: path })).toBe('not_bound');
    const certificate: Confirmation = { kind: 'x5t#S256', thumbprint: own.thumbprint };
    expect(await check({ credential: token, resource: path, presenter: certificate })).toBe('binding_mismatch');
    const prove = async (pair: typeof holder, more: { nonce?: string; token?: string } = {}) => ({
      dpop: { proof: await generateProof(pair, url, 'PUT', more.nonce, more.token ?? token), method: 'PUT', url },
    });
    expect(await offlineReason(token, {})).toBe('proof_missing');
    expect(await offlineReason(token, await prove(thief))).toBe('binding_mismatch');
    // A proof that was made for another credential of the same key.
    const other = await issue(lease, { confirmation: own });
    expect(await offlineReason(token, await prove(holder, { token: other }))).toBe('proof_invalid');
    expect(await offlineReason(token, await prove(holder))).toBe('ok');
  });

  it('cannot be bound anew by whoever has it, nor renewed: only the run’s principal is given another', async () => {
    const lease = await hold();
    await issue(lease);
    await expect(issue(lease, { context: as('runner', { name: 'thief' }) })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });
});

describe('replayed', () => {
  /** The same in both forms that a target can be shown. */
  async function both(lease: Lease, credential: string): Promise<[string, string]> {
    return [
      await check({ credential, resource: pathOf(lease) }),
      await check({ leaseId: lease.leaseId, token: tokenOf(lease), resource: pathOf(lease) }),
    ];
  }

  it('after a renewal it counts until its own end, which the renewal does not move', async () => {
    const lease = await hold();
    const credential = await issue(lease);
    const before = decodeJwt(credential).exp;
    const { value } = await a.api.renewLeases(as('runner'), {
      runId: lease.runId,
      renewals: [{ leaseId: lease.leaseId, ttl: 120 * SECOND, progressMarker: 'more' }],
    });
    expect(value[0]).toMatchObject({ refusal: null });
    expect(await both(lease, credential)).toEqual(['ok', 'ok']);
    const { value: answer } = await b.api.introspectCredential(as('target'), { token: credential });
    expect(answer).toMatchObject({ active: true, claims: { exp: before } });
    const renewed = await issue(lease);
    expect(decodeJwt(renewed).jti).not.toBe(decodeJwt(credential).jti);
    expect(decodeJwt(renewed).authorization_details).toEqual(decodeJwt(credential).authorization_details);
  });

  const endings: [string, (lease: Lease) => Promise<unknown>, string][] = [
    [
      'a release',
      (lease) => a.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null }),
      'released',
    ],
    ['a revocation', (lease) => a.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'x' }), 'revoked'],
    ['a stop', (lease) => a.api.stopRun(as('operator'), { runId: lease.runId, reason: 'x' }), 'run_stopped'],
    [
      'the end that its run reported',
      (lease) =>
        a.api.updateRunState(as('runner'), {
          runId: lease.runId,
          state: 'finished',
          reason: '',
          idempotencyKey: freshKey(),
        }),
      'run_ended',
    ],
  ];

  it.each(endings)(
    'after %s it is refused, and goes on being refused when another run holds the resource',
    async (_, end, reason) => {
      const lease = await hold();
      const credential = await issue(lease);
      expect(await both(lease, credential)).toEqual(['ok', 'ok']);
      await end(lease);
      expect(await both(lease, credential)).toEqual([reason, reason]);
      expect(await isActive(credential)).toBe(false);
      const next = await hold({ resource: pathOf(lease) });
      expect(await both(lease, credential)).toEqual([reason, reason]);
      expect(await check({ leaseId: next.leaseId, token: tokenOf(lease), resource: pathOf(lease) })).toBe(
        'stale_token',
      );
      expect(await check({ credential: await issue(next), token: tokenOf(lease), resource: pathOf(lease) })).toBe(
        'stale_token',
      );
      // Its own principal is given no other for it either.
      await expect(issue(lease)).rejects.toThrow(/refused/);
    },
  );

  it('after the end of the run’s authority it is refused, and died before it', async () => {
    // 5 s of tolerance and 1 s of skew before the end; as long before that again, so that it is taken first.
    const lease = await hold({ forSeconds: 12 });
    const credential = await issue(lease);
    expect(await both(lease, credential)).toEqual(['ok', 'ok']);
    const died = await eventually(
      () => both(lease, credential),
      ([byCredential]) => byCredential !== 'ok',
    );
    expect(died).toEqual(['credential_expired', 'ok']);
    await eventually(
      () => both(lease, credential),
      ([, byLease]) => byLease !== 'ok',
    );
    const [byCredential, byLease] = await both(lease, credential);
    expect(byCredential).toBe('credential_expired');
    expect(['run_ended', 'expired']).toContain(byLease);
  });
});

describe('P4: a fencing token without its lease', () => {
  it('that was guessed or passed on is worth nothing beside any other lease, or none', async () => {
    const [mine, theirs] = [await hold(), await hold()];
    const path = pathOf(theirs);
    const token = tokenOf(theirs);
    expect(await check({ leaseId: mine.leaseId, token, resource: path })).toBe('not_covered');
    expect(await check({ leaseId: mine.leaseId, token, resource: pathOf(mine) })).toBe('stale_token');
    for (const leaseId of ['0'.repeat(32), theirs.leaseId.toUpperCase(), theirs.leaseId.slice(1), `${theirs.leaseId}0`])
      expect(await check({ leaseId, token, resource: path })).toBe('unknown_lease');
    expect(await check({ leaseId: theirs.leaseId, token, resource: path, run: mine.runId })).toBe('wrong_holder');
    await expect(check({ token, resource: path })).rejects.toMatchObject({
      details: { violations: [{ field: 'lease_id' }] },
    });
    for (const near of [token - 1, token + 1, 1])
      expect(await check({ leaseId: theirs.leaseId, token: near, resource: path })).toBe('stale_token');
    expect(await check({ leaseId: theirs.leaseId, token: token + 3_600 * SECOND, resource: path })).toBe(
      'future_token',
    );
  });

  it('is told to nobody who is refused: not in verdicts, refusals, blockers or previews', async () => {
    const theirs = await hold({ context: as('runner', { name: 'owner' }) });
    const path = pathOf(theirs);
    const curious = as('runner', { name: 'curious' });
    const runId = await createRun(b.api, { context: curious });
    const told: unknown[] = [
      await b.api.acquireWriteSet(curious, acquireInput(runId, [write(path, 'promote')])),
      await b.api.previewWriteSet(curious, acquireInput(runId, [write(path, 'promote')])),
      await b.api.findBlockers(curious, { resource: path }),
      await b.api.checkFence(as('target'), {
        leaseId: theirs.leaseId,
        presenterRunId: '',
        writes: [{ resource: path, action: 'promote', token: 1, observedVersion: null }],
        requestId: '',
      }),
      await b.api.getLease(curious, { leaseId: theirs.leaseId }).catch((error: unknown) => error),
    ];
    expect(told).toHaveLength(5);
    const wire = JSON.stringify(told.at(-2));
    expect(wire).not.toContain(String(tokenOf(theirs)));
  });

  it('waits for nobody: the next holder’s is greater, and the one before is stale at once', async () => {
    const first = await hold();
    const run = await createRun(b.api);
    await a.api.releaseLease(as('runner'), { runId: first.runId, leaseId: first.leaseId, acquireKey: null });
    const second = leaseOf(
      (await b.api.acquireWriteSet(as('runner'), acquireInput(run, [write(pathOf(first), 'promote')]))).value,
    );
    expect(tokenOf(second)).toBeGreaterThan(tokenOf(first));
    expect(await check({ leaseId: second.leaseId, token: tokenOf(first), resource: pathOf(first) })).toBe(
      'stale_token',
    );
  });
});
