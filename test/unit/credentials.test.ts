import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFence } from '../../src/domain/check-fence.js';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { observes, resolveResource } from '../../src/domain/conflict-map/index.js';
import {
  type Confirmation,
  credentialReason,
  type NewCredential,
  type PresentedCredential,
  scopeFor,
} from '../../src/domain/credential.js';
import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from '../../src/domain/credential-times.js';
import { decideIssueCredentials, type IssueDecision } from '../../src/domain/decide/issue-credentials.js';
import { decideRevokeCredentials, MAX_REVOCATIONS } from '../../src/domain/decide/revoke-credentials.js';
import type { FenceVerdict, ProtectedWrite } from '../../src/domain/fence.js';
import type { Lease } from '../../src/domain/lease.js';
import { MILLISECOND, type Micros, SECOND } from '../../src/domain/time.js';
import { DOCUMENT, leased, MAX_SKEW, Namespace, optimistic, stable } from '../support/domain.js';

const TARGET = 'svc:docs';

function issue(
  ns: Namespace,
  lease: Lease | null,
  more: { audience?: string; runId?: string; principal?: string; boundTo?: Confirmation | null } = {},
): IssueDecision {
  const runId = more.runId ?? lease?.runId ?? '';
  const [decided] = ns.decide((decision) =>
    decideIssueCredentials(decision, {
      principal: more.principal ?? `principal-of-${runId}`,
      runId,
      leaseId: lease?.leaseId ?? null,
      wanted: [{ audience: more.audience ?? TARGET, jti: ns.fresh('jti') }],
      boundTo: more.boundTo ?? null,
      maxClockSkew: MAX_SKEW,
      requestIds: [],
    }),
  );
  return decided as IssueDecision;
}

function issued(decided: IssueDecision): NewCredential {
  if (decided.kind !== 'credential') throw new Error(`refused: ${decided.refusal.message}`);
  return decided.credential;
}

const presented = (credential: NewCredential): PresentedCredential => ({ ...credential, namespace: 'test' });

/** As a target would ask, at the time of the namespace. */
function check(
  ns: Namespace,
  credential: NewCredential,
  write: Partial<ProtectedWrite> = {},
  presenter: Confirmation | null = null,
): FenceVerdict {
  const { map, revocations } = ns.state;
  const now = Math.max(ns.now, ns.state.time);
  const lease = credential.leaseId === null ? undefined : ns.state.leases.get(credential.leaseId);
  const facts = { namespace: 'test', now, maxClockSkew: MAX_SKEW, revocations, presenter };
  return checkFence(
    {
      now,
      maxClockSkew: MAX_SKEW,
      lease,
      run: ns.state.runs.get(credential.runId),
      pathOf: (resource) => {
        const resolved = resolveResource(map, resource);
        return resolved.ok ? resolved.resource : null;
      },
      observes: (resource) => observes(map, resource),
      ownedByCaller: () => true,
      inDoubt: () => false,
      frozen: () => false,
    },
    {
      presenterRunId: '',
      writes: [{ resource: 'doc/a', action: 'replace', token: 0, observedVersion: null, ...write }],
      credential: {
        reason: credentialReason(presented(credential), facts),
        grants: credential.scope.grants,
        expiresAt: credential.expiresAt * SECOND,
      },
    },
  );
}

const reason = (...args: Parameters<typeof check>) => check(...args).results[0]?.reason;

function revoke(ns: Namespace, subject: Parameters<typeof decideRevokeCredentials>[1]['subject'], principal?: string) {
  return ns.decide((decision) =>
    decideRevokeCredentials(decision, { subject, principal: principal ?? null, reason: 'leaked', requestIds: [] }),
  );
}

describe('issuing', () => {
  it('P10: a credential ends a minute from now at most, and before its lease by tolerance and skew', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 600 }),
        fc.integer({ min: 0, max: 600 * SECOND }),
        fc.integer({ min: 0, max: 999_999 }),
        (ttlSeconds, later, fraction) => {
          const ns = new Namespace().runs('r').advance(fraction);
          const lease = ns.granted(ns.acquire('r', [leased('doc/a')], { ttl: ttlSeconds * SECOND }));
          ns.advance(later);
          const end = lease.expiresAt ?? 0;
          const decided = issue(ns, lease);
          const latest = Math.min(ns.now + CREDENTIAL_LIFE, end - CREDENTIAL_TOLERANCE - MAX_SKEW);
          if (decided.kind === 'refusal') {
            expect(decided.refusal.kind).toBe(end <= ns.now ? 'ended' : 'too_short');
            // What was refused could not have lived for two seconds.
            expect(latest - ns.now).toBeLessThan(2 * SECOND);
            return;
          }
          const expiresAt = decided.credential.expiresAt * SECOND;
          expect(expiresAt).toBeLessThanOrEqual(latest);
          expect(expiresAt).toBeGreaterThan(latest - SECOND);
          expect(expiresAt - ns.now).toBeGreaterThanOrEqual(SECOND);
          expect(decided.credential.issuedAt).toBe(Math.floor(ns.now / SECOND));
          expect(ns.lease(lease).credentialsUntil).toBe(expiresAt);
          expect(ns.decision.reliedOnAsFuture).toBe(expiresAt);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('P10: what it says is what the lease allows, and never more', () => {
    const actions = fc.constantFrom(leased, optimistic, stable);
    const path = fc.constantFrom('doc/a', 'doc/b', 'doc/c/', 'obs/a', 'deployment/x', 'dns/y');
    const entries = fc.uniqueArray(fc.tuple(actions, path), { minLength: 1, maxLength: 5, selector: ([, p]) => p });
    fc.assert(
      fc.property(entries, (wanted) => {
        const ns = new Namespace().runs('r');
        const lease = ns.granted(
          ns.acquire(
            'r',
            wanted.map(([make, at]) => make(at)),
          ),
        );
        const { grants } = scopeFor(ns.state.map, lease, TARGET);
        for (const grant of grants) {
          for (const resource of grant.resources) {
            const entry = lease.entries.find(
              (one) => one.access === 'write' && one.resource === resource && one.scope === grant.scope,
            );
            expect(entry).toBeDefined();
            expect(grant.token).toBe(entry?.token);
            expect(entry?.actions.toSorted()).toEqual(grant.actions);
            for (const action of grant.actions)
              expect(ns.check(lease, { resource, action, token: grant.token, observedVersion: '1' }).allowed).toBe(
                true,
              );
          }
        }
        const told = grants.flatMap(({ resources }) => resources);
        const writes = lease.entries.filter(({ access, observedRefusal }) => access === 'write' && !observedRefusal);
        expect(told.toSorted()).toEqual([...new Set(writes.map(({ resource }) => resource))].toSorted());
      }),
      { numRuns: 200 },
    );
  });

  it('C9: only the principal that created the run is given any, and only for its own lease', () => {
    const ns = new Namespace().runs('r', 's');
    const lease = ns.hold('r', leased('doc/a'));
    expect(() => issue(ns, lease, { principal: 'somebody' })).toThrow(/no run/);
    expect(() => issue(ns, lease, { runId: 's' })).toThrow(/No lease/);
  });

  it('is refused for what is over, with a code and what to do', () => {
    const ns = new Namespace().runs('r', 's');
    const lease = ns.hold('r', leased('doc/a'));
    const waiting = ns.queue('s', leased('doc/a'));
    expect(issue(ns, waiting)).toMatchObject({ refusal: { kind: 'ended', resolution: { retryable: true } } });
    ns.release(lease);
    expect(issue(ns, lease)).toMatchObject({ refusal: { kind: 'ended' } });
    expect(ns.kinds).toEqual(['credentials_refused']);
    ns.stop('s');
    expect(issue(ns, null, { runId: 's' })).toMatchObject({ refusal: { kind: 'run_ended' } });
  });

  it('C4: without a lease it is given, and allows no write', () => {
    const ns = new Namespace().runs('r');
    const credential = issued(issue(ns, null, { runId: 'r' }));
    expect(credential.scope).toEqual({ grants: [], proposals: [] });
    expect(reason(ns, credential)).toBe('no_write_authority');
  });

  it('names only targets that own something of the write set, and tells each what is its own', () => {
    const [doc, obs, ...others] = DOCUMENT.kinds ?? [];
    const document = {
      ...DOCUMENT,
      kinds: [{ ...doc, owner_service: [TARGET] }, { ...obs, owner_service: ['svc:obs'] }, ...others],
    } as ConflictMapDocument;
    const ns = new Namespace(document).runs('r');
    const lease = ns.hold('r', leased('doc/a'), leased('obs/a'), leased('dns/a'));
    const resourcesFor = (audience: string) =>
      issued(issue(ns, lease, { audience })).scope.grants.flatMap(({ resources }) => resources);
    expect(resourcesFor(TARGET)).toEqual(['dns/a', 'doc/a']);
    expect(resourcesFor('svc:obs')).toEqual(['dns/a', 'obs/a']);
    expect(issue(ns, lease, { audience: 'svc:other' })).toMatchObject({
      refusal: { kind: 'audience_not_allowed', resource: 'doc/a', message: expect.stringContaining(TARGET) },
    });
  });

  it('renewing the lease gives new credentials and changes nothing about old ones', () => {
    const ns = new Namespace().runs('r');
    const lease = ns.granted(ns.acquire('r', [leased('doc/a')], { ttl: 30 * SECOND }));
    const first = issued(issue(ns, lease));
    ns.advance(5 * SECOND);
    ns.renew(lease, { ttl: 60 * SECOND });
    expect(reason(ns, first)).toBe('ok');
    const second = issued(issue(ns, ns.lease(lease)));
    expect(second.jti).not.toBe(first.jti);
    expect(second.scope).toEqual(first.scope);
    ns.now = first.expiresAt * SECOND;
    expect(reason(ns, first)).toBe('credential_expired');
    expect(reason(ns, second)).toBe('ok');
  });
});

describe('a check by credential', () => {
  it('says of the lease what a check by its id and tokens says', () => {
    const write = fc.record({
      resource: fc.constantFrom('doc/a', 'doc/b', 'doc/c/d', 'arn:doc:a', 'dns/a', 'no kind'),
      action: fc.constantFrom('replace', 'patch', 'other'),
      observedVersion: fc.constantFrom(null, '1'),
    });
    const happen = fc.constantFrom('nothing', 'release', 'revoke', 'stop', 'finish', 'renew', 'lose');
    fc.assert(
      fc.property(write, happen, (asked, event) => {
        const ns = new Namespace().runs('r');
        const lease = ns.hold('r', leased('doc/a'), optimistic('doc/b'), leased('doc/c/'));
        const credential = issued(issue(ns, lease));
        ns.advance(SECOND);
        if (event === 'release') ns.release(lease);
        if (event === 'revoke') ns.revoke(lease);
        if (event === 'stop') ns.stop('r');
        if (event === 'finish') ns.update('r', 'finished');
        if (event === 'renew') ns.renew(lease);
        if (event === 'lose') ns.loseHistory();
        const token = lease.entries[0]?.token ?? 0;
        const byId = ns.check(lease, { ...asked, token }).results[0];
        const byCredential = check(ns, credential, asked).results[0];
        expect(byCredential).toMatchObject({ allowed: byId?.allowed, reason: byId?.reason });
      }),
      { numRuns: 300 },
    );
  });

  it('P4: another token than its own is refused; no token, and its own, are taken', () => {
    const ns = new Namespace().runs('r');
    const lease = ns.hold('r', leased('doc/a'));
    const credential = issued(issue(ns, lease));
    const token = lease.entries[0]?.token ?? 0;
    expect(reason(ns, credential, { token: 0 })).toBe('ok');
    expect(reason(ns, credential, { token })).toBe('ok');
    expect(reason(ns, credential, { token: token - 1 })).toBe('stale_token');
    expect(reason(ns, credential, { token: Number.POSITIVE_INFINITY })).toBe('future_token');
  });

  it('that stood for a write set its lease no longer has is stale, and of an ended lease it says how that ended', () => {
    const ns = new Namespace().runs('r');
    const lease = ns.hold('r', leased('doc/a'));
    const ask = () =>
      checkFence(
        {
          now: ns.now,
          maxClockSkew: MAX_SKEW,
          lease: ns.lease(lease),
          run: ns.state.runs.get('r'),
          pathOf: (resource) => resource,
          observes: () => false,
          ownedByCaller: () => true,
          inDoubt: () => false,
          frozen: () => false,
        },
        {
          presenterRunId: '',
          writes: [{ resource: 'doc/a', action: 'replace', token: 0, observedVersion: null }],
          credential: { reason: 'ok', grants: null, expiresAt: ns.now + SECOND },
        },
      ).results[0]?.reason;
    expect(ask()).toBe('stale_token');
    ns.release(lease);
    expect(ask()).toBe('released');
  });

  it('P10: allows nothing that the credential does not say, whatever its lease allows', () => {
    const ns = new Namespace().runs('r');
    const lease = ns.hold('r', leased('doc/a'), leased('doc/b'));
    const token = lease.entries[0]?.token ?? 0;
    const narrow = { resources: ['doc/a'], actions: ['patch'], token, scope: 'exact', exclusive: true } as const;
    const credential = { ...issued(issue(ns, lease)), scope: { grants: [narrow], proposals: [] } };
    expect(ns.check(lease, { resource: 'doc/a', action: 'replace' }).allowed).toBe(true);
    expect(reason(ns, credential, { resource: 'doc/a', action: 'replace' })).toBe('action_not_allowed');
    expect(reason(ns, credential, { resource: 'doc/b', action: 'replace' })).toBe('not_covered');
    // What it says and its lease does not have, it does not give either.
    expect(reason(ns, credential, { resource: 'doc/a', action: 'patch' })).toBe('action_not_allowed');
    const older = { ...narrow, actions: ['replace'], token: token - 1 };
    expect(reason(ns, { ...credential, scope: { grants: [older], proposals: [] } })).toBe('stale_token');
  });

  it('is valid no longer than the credential', () => {
    const ns = new Namespace().runs('r');
    const credential = issued(issue(ns, ns.granted(ns.acquire('r', [leased('doc/a')], { ttl: 300 * SECOND }))));
    expect(check(ns, credential).validFor).toBe(credential.expiresAt * SECOND - ns.now);
  });

  it('demands the key it is bound to', () => {
    const ns = new Namespace().runs('r');
    const own: Confirmation = { kind: 'jkt', thumbprint: 'a'.repeat(43) };
    const credential = issued(issue(ns, ns.hold('r', leased('doc/a')), { boundTo: own }));
    expect(reason(ns, credential)).toBe('not_bound');
    expect(reason(ns, credential, {}, { ...own, thumbprint: 'b'.repeat(43) })).toBe('binding_mismatch');
    expect(reason(ns, credential, {}, { ...own, kind: 'x5t#S256' })).toBe('binding_mismatch');
    expect(reason(ns, credential, {}, own)).toBe('ok');
  });

  it('of another namespace, or from the future, counts for nothing', () => {
    const ns = new Namespace().runs('r');
    const credential = presented(issued(issue(ns, ns.hold('r', leased('doc/a')))));
    const facts = {
      namespace: 'test',
      now: ns.now,
      maxClockSkew: 0,
      revocations: ns.state.revocations,
      presenter: null,
    };
    expect(credentialReason(credential, { ...facts, namespace: 'other' })).toBe('unknown_lease');
    expect(credentialReason(credential, { ...facts, now: credential.issuedAt * SECOND - 1 })).toBe('not_yet_valid');
  });
});

describe('revoking', () => {
  const held = (): { ns: Namespace; lease: Lease; credential: NewCredential } => {
    const ns = new Namespace().runs('r').advance(200 * MILLISECOND);
    const lease = ns.hold('r', leased('doc/a'));
    return { ns, lease, credential: issued(issue(ns, lease)) };
  };

  it.each([
    ['jti', ({ credential }: ReturnType<typeof held>) => ({ kind: 'jti', jti: credential.jti }) as const],
    ['lease', ({ lease }: ReturnType<typeof held>) => ({ kind: 'lease', leaseId: lease.leaseId }) as const],
    ['run', ({ lease }: ReturnType<typeof held>) => ({ kind: 'run', runId: lease.runId }) as const],
  ])('by %s refuses what was out, and the lease lives on', (kind, subject) => {
    const all = held();
    const { ns, lease, credential } = all;
    ns.advance(10 * MILLISECOND);
    expect(revoke(ns, subject(all))).toEqual({ effectiveAt: ns.now });
    expect(reason(ns, credential)).toBe('credential_revoked');
    expect(ns.check(lease).allowed).toBe(true);
    // One of the same second could not be told from it.
    const again = issue(ns, lease);
    if (kind === 'jti') expect(reason(ns, issued(again))).toBe('ok');
    else expect(again).toMatchObject({ refusal: { kind: 'credentials_revoked', retryAfter: 790 * MILLISECOND } });
    ns.advance(SECOND);
    expect(reason(ns, issued(issue(ns, lease)))).toBe('ok');
    expect(reason(ns, credential)).toBe('credential_revoked');
  });

  it('is for operators, and for runners about their own', () => {
    const { ns, lease } = held();
    const own = { kind: 'lease', leaseId: lease.leaseId } as const;
    revoke(ns, own, 'principal-of-r');
    expect(() => revoke(ns, own, 'somebody')).toThrow(/No lease/);
    expect(() => revoke(ns, { kind: 'run', runId: 'r' }, 'somebody')).toThrow(/no run/);
    expect(() => revoke(ns, { kind: 'jti', jti: 'x' }, 'principal-of-r')).toThrow(/operator/);
  });

  it('is bounded: what no longer matters makes room, and nothing that does is forgotten', () => {
    const { ns } = held();
    for (let i = 0; i < MAX_REVOCATIONS; i += 1) revoke(ns, { kind: 'jti', jti: `x${i}` });
    expect(() => revoke(ns, { kind: 'jti', jti: 'one more' })).toThrow(/still matter/);
    expect(ns.state.revocations.size).toBe(MAX_REVOCATIONS);
    ns.advance(CREDENTIAL_LIFE);
    revoke(ns, { kind: 'jti', jti: 'later' });
    expect(ns.state.revocations.size).toBe(1);
  });

  it('keeps each for as long as the last credential that it concerns', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 70 * SECOND }), (later: Micros) => {
        const { ns, lease, credential } = held();
        revoke(ns, { kind: 'lease', leaseId: lease.leaseId });
        ns.advance(later);
        const until = ns.state.revocations.get(`lease:${lease.leaseId}`)?.until ?? 0;
        if (until <= ns.now) expect(credential.expiresAt * SECOND).toBeLessThanOrEqual(ns.now);
        expect(reason(ns, credential)).not.toBe('ok');
      }),
    );
  });
});
