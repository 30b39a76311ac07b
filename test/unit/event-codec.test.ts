import canonicalizeModule from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DomainEvent, EventBody, EventKind } from '../../src/domain/event.js';
import type { EndReason, Lease, LeaseEntry } from '../../src/domain/lease.js';
import type { EndRefusal } from '../../src/domain/refusal.js';
import type { Run } from '../../src/domain/run.js';
import { toRecords } from '../../src/engine/batch.js';
import { canonicalJson } from '../../src/engine/canonical-json.js';
import { BODY_VERSION, decodeEvent, encodeBody, UnknownEvent } from '../../src/engine/event-codec.js';
import { GENESIS_HASH, hashEvent } from '../../src/engine/hash-chain.js';
import type { EventRecord } from '../../src/storage/store.js';
import { leased, Namespace, optimistic, stable } from '../support/domain.js';

const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

const inOrder = (record: object): object =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));

// Any text that the database can store: whole code points, no U+0000.
const text = fc.string({ unit: 'binary', maxLength: 12 }).map((value) => value.replaceAll('\u0000', ''));
const time = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const optional = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(value, { nil: null });
const access = fc.constantFrom('read', 'stable_read', 'write');
const scope = fc.constantFrom('exact', 'subtree');
const texts = fc.array(text, { maxLength: 3 });

const requested = fc.record({ resource: text, access, scope, actions: texts, observedVersion: optional(text) });
const request = fc.record({
  entries: fc.array(requested, { maxLength: 3 }),
  task: optional(fc.record({ name: text, parameters: fc.dictionary(text, text, { maxKeys: 3 }) })),
  resourceSet: optional(text),
});
const entry: fc.Arbitrary<LeaseEntry> = fc.record({
  resource: text,
  access,
  scope,
  actions: texts,
  exclusive: fc.boolean(),
  impliedBy: text,
  mode: fc.constantFrom('observe', 'enforce'),
  validation: fc.constantFrom('introspect', 'view', 'local'),
  maxViewAge: fc.nat(60_000_000),
  resolver: text,
  observedVersion: optional(text),
  token: fc.oneof(fc.constant(0), time),
  suspended: fc.boolean(),
  observedRefusal: optional(text),
});
const ruleLock = fc.record({ key: text, mode: fc.constantFrom('IX', 'S', 'X'), rule: text, entry: fc.nat(99) });
const endReason: fc.Arbitrary<EndReason> = fc.constantFrom('released', 'expired', 'revoked', 'run_stopped');
const endRefusal: fc.Arbitrary<EndRefusal> = fc.record({
  kind: fc.constantFrom('forbidden', 'already_held'),
  message: text,
  resource: text,
  resolution: fc.record({ action: text, who: text, retryable: fc.boolean() }),
});
const lease: fc.Arbitrary<Lease> = fc.record({
  leaseId: text,
  runId: text,
  idempotencyKey: text,
  delegatedFrom: text,
  state: fc.constantFrom('waiting', 'active', 'ended'),
  generation: fc.integer({ min: 1, max: 1_000 }),
  request: optional(request),
  purpose: text,
  entries: fc.array(entry, { maxLength: 4 }),
  ruleLocks: fc.array(ruleLock, { maxLength: 2 }),
  requestedTtl: optional(time),
  ttl: time,
  createdAt: time,
  grantedAt: optional(time),
  expiresAt: optional(time),
  maxExpiresAt: optional(time),
  maxTtl: time,
  progressWindow: optional(time),
  progressMarker: optional(text),
  progressAt: optional(time),
  claimBy: optional(time),
  credentialsUntil: optional(time),
  waiting: optional(
    fc.record({
      queuedAt: time,
      waitsUntil: time,
      attachedUntil: time,
      attachment: fc.nat(),
      attached: fc.boolean(),
    }),
  ),
  endReason: optional(endReason),
  endedAt: optional(time),
  endRefusal: optional(endRefusal),
  lockDelay: optional(fc.record({ until: time, over: fc.boolean() })),
  takeOver: optional(fc.record({ ended: texts, acceptsOverlap: fc.boolean() })),
});
const run: fc.Arbitrary<Run> = fc.record({
  runId: text,
  idempotencyKey: text,
  state: fc.constantFrom('active', 'blocked', 'stopped'),
  stateReason: text,
  blockCause: optional(fc.constantFrom('reported', 'database_changed')),
  purpose: text,
  goalRevision: text,
  initiator: text,
  initiatorVerified: fc.boolean(),
  parentRunId: text,
  maxTtl: fc.option(fc.integer({ min: 1 })),
  principal: text,
  allowed: fc.array(fc.record({ pattern: text, actions: texts }), { maxLength: 3 }),
  authorityEndsAt: time,
  escalation: texts,
  createdAt: time,
  endedAt: optional(time),
  endsAs: optional(fc.constantFrom('stopped', 'expired')),
});
const count = fc.nat(1_000);

const keyBinding = fc.record(
  {
    scope: text,
    key: text,
    use: fc.constantFrom(
      'acquire',
      'tombstone',
      'create_run',
      'update_run_state',
      'stop_runs',
      'report_override',
      'amend',
    ),
    fingerprint: text,
    runId: text,
    leaseId: text,
    boundAt: time,
    stopped: texts,
    effectiveAt: time,
  },
  { requiredKeys: ['scope', 'key', 'use', 'fingerprint', 'runId', 'leaseId', 'boundAt'] },
);

/** One for each kind of event; the type checker sees to it that none is missing. */
const BODIES: { readonly [K in EventKind]: fc.Arbitrary<Omit<Extract<EventBody, { kind: K }>, 'kind'>> } = {
  namespace_created: fc.record({ name: text }),
  checkpoint_begun: fc.record({}),
  checkpoint_written: fc.record({ revision: count, digestVersion: count, digest: text }),
  database_identified: fc.record({
    identity: fc.record({
      systemIdentifier: text,
      timeline: count,
      databaseOid: count,
      eventTableOid: count,
      postmasterStart: time,
    }),
    lostHistory: fc.boolean(),
    why: text,
    continuesFrom: fc.record({ revision: count, hash: text }),
    localKindsFrom: optional(time),
  }),
  conflict_map_put: fc.record({
    version: count,
    text,
    document: fc.jsonValue({ noUnicodeString: false, maxDepth: 3 }),
    reason: text,
    onLiveConflict: fc.constantFrom('refuse', 'revoke_newer', 'keep_until_end'),
  }),
  run_created: fc.record({ run, fingerprint: text }),
  run_state_changed: fc.record({
    runId: text,
    state: fc.constantFrom('active', 'stopped'),
    reason: text,
    blockCause: optional(fc.constantFrom('reported', 'database_changed')),
    endedAt: optional(time),
    endsAs: optional(fc.constantFrom('stopped', 'expired')),
  }),
  writes_admitted: fc.record({
    target: text,
    requestId: text,
    writes: fc.array(
      fc.record({ admissionId: text, resource: text, action: text, token: time, observedVersion: optional(text) }),
      { maxLength: 3 },
    ),
  }),
  writes_reported: fc.record({
    target: text,
    requestId: text,
    detail: text,
    writes: fc.array(
      fc.record({
        admissionId: text,
        resource: text,
        action: text,
        result: fc.constantFrom('succeeded', 'failed', 'unknown'),
        observedVersion: optional(text),
        newVersion: optional(text),
        changedFields: texts,
        contradicts: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
  }),
  doubt_settled: fc.record({
    admissionId: text,
    resource: text,
    action: text,
    happened: fc.boolean(),
    newVersion: optional(text),
    reason: text,
  }),
  lease_queued: fc.record({ lease, fingerprint: text }),
  lease_granted: fc.record({ lease, fingerprint: optional(text) }),
  lease_attached: fc.record({
    attachments: fc.array(
      fc.record({ leaseId: text, attachedUntil: time, attachment: count, attached: fc.boolean() }),
      { maxLength: 3 },
    ),
  }),
  lease_claimed: fc.record({ leaseId: text }),
  leases_renewed: fc.record({
    runId: text,
    renewals: fc.array(
      fc.record({ leaseId: text, ttl: time, expiresAt: time, progressMarker: optional(text), progressAt: time }),
      { maxLength: 3 },
    ),
  }),
  renewals_refused: fc.record({
    refusals: fc.array(fc.record({ leaseId: text, refusal: fc.constantFrom('ended', 'too_late') }), { maxLength: 3 }),
  }),
  lease_amended: fc.record({
    leaseId: text,
    cause: fc.constantFrom('amended', 'delegated', 'returned'),
    generation: count,
    entries: fc.array(entry, { maxLength: 3 }),
    ruleLocks: fc.array(ruleLock, { maxLength: 2 }),
    times: optional(
      fc.record({
        maxTtl: time,
        maxExpiresAt: optional(time),
        progressWindow: optional(time),
        progressAt: optional(time),
      }),
    ),
    left: optional(
      fc.record({
        leaseId: text,
        entries: fc.array(entry, { maxLength: 3 }),
        ruleLocks: fc.array(ruleLock, { maxLength: 2 }),
        until: time,
      }),
    ),
    binding: optional(keyBinding),
  }),
  lease_reexpanded: fc.record({
    leaseId: text,
    generation: count,
    entries: fc.array(entry, { maxLength: 3 }),
    ruleLocks: fc.array(ruleLock, { maxLength: 2 }),
  }),
  lease_ended: fc.record(
    { leaseId: text, endReason, reason: text, lockDelayUntil: optional(time), refusal: endRefusal },
    { requiredKeys: ['leaseId', 'endReason', 'reason', 'lockDelayUntil'] },
  ),
  lock_delay_ended: fc.record({ leaseId: text }),
  key_bound: fc.record({ binding: keyBinding }),
  rehearsal_begun: fc.record({
    windows: fc.array(
      fc.record({ pattern: text, window: fc.record({ resources: texts, runIds: texts, until: time }) }),
      { maxLength: 3 },
    ),
  }),
  rehearsal_recorded: fc.record({
    pattern: text,
    rehearsal: fc.record({
      resource: text,
      target: text,
      suiteVersion: text,
      digest: text,
      cases: fc.array(fc.record({ name: text, outcome: fc.constantFrom('passed', 'failed') }), { maxLength: 3 }),
      lacks: text,
      basis: text,
      recordedBy: text,
      recordedAt: time,
      validUntil: time,
    }),
  }),
  write_set_taken_over: fc.record({
    reason: text,
    ended: fc.array(fc.record({ leaseId: text, runId: text }), { maxLength: 3 }),
    acceptsOverlap: fc.boolean(),
    overlaps: fc.array(
      fc.record({
        leaseId: text,
        runId: text,
        resource: text,
        lockDelayUntil: optional(time),
        inDoubtSince: optional(time),
      }),
      { maxLength: 3 },
    ),
  }),
  pattern_frozen: fc.record({
    freeze: fc.record({
      pattern: text,
      scope: fc.constantFrom('exact', 'subtree'),
      deniesChecks: fc.boolean(),
      reason: text,
      frozenBy: text,
      frozenAt: time,
      until: optional(time),
      effectiveAt: time,
    }),
  }),
  pattern_thawed: fc.record({ pattern: text, byTime: fc.boolean(), reason: text }),
  acquire_refused: fc.record({
    refusal: fc.constantFrom('held', 'limit'),
    message: text,
    purpose: text,
    blockers: texts,
  }),
  credentials_issued: fc.record({
    credentials: fc.array(fc.record({ audience: text, jti: text }), { maxLength: 3 }),
    expiresAt: time,
    boundTo: optional(fc.record({ kind: fc.constantFrom('x5t#S256', 'jkt'), thumbprint: text })),
  }),
  credentials_refused: fc.record({
    refusals: fc.array(
      fc.record({ audience: text, refusal: fc.constantFrom('too_short', 'audience_not_allowed'), message: text }),
      { maxLength: 3 },
    ),
  }),
  credentials_revoked: fc.record({
    subject: text.map((id) => `lease:${id}` as const),
    until: time,
    reason: text,
  }),
  signing_keys_changed: fc.record({
    changes: fc.array(fc.record({ keyId: text, state: fc.constantFrom('next', 'current') }), { maxLength: 3 }),
    reason: text,
  }),
  checks_denied: fc.record({
    denials: fc.array(
      fc.record({
        reason: text,
        resource: text,
        action: text,
        runId: text,
        leaseId: text,
        presentedRun: text,
        target: text,
        count,
        requestIds: texts,
        observedOnly: fc.boolean(),
      }),
      { maxLength: 3 },
    ),
  }),
  texts_erased: fc.record({ runId: text, reason: text }),
  log_cut: fc.record({
    firstRevision: count,
    checkpoint: fc.record({ revision: count, hash: text, time, keyId: text, signature: text }),
    archiveDigest: text,
    evenYoung: fc.boolean(),
    reason: text,
    lostBranches: fc.array(fc.record({ revision: count, time }), { maxLength: 2 }),
  }),
  override_reported: fc.record({
    overrideId: text,
    who: text,
    why: text,
    until: time,
    patterns: texts,
    use: optional(
      fc.record({
        requestId: text,
        usedAt: time,
        writes: fc.array(fc.record({ resource: text, action: text, observedVersion: optional(text) }), {
          maxLength: 3,
        }),
      }),
    ),
    notOwned: texts,
  }),
  resources_unmatched: fc.record({ counts: fc.array(fc.record({ resource: text, times: count }), { maxLength: 3 }) }),
};

const event = (kind: EventKind): fc.Arbitrary<DomainEvent> =>
  fc.record({
    time,
    actor: text,
    runId: text,
    leaseId: text,
    resources: texts,
    requestIds: texts,
    body: (BODIES[kind] as fc.Arbitrary<object>).map((rest) => ({ kind, ...rest }) as EventBody),
  });

const HEAD = { revision: 6, hash: GENESIS_HASH, time: 0 };
const SALT = '5a'.repeat(16);
const record = (of: DomainEvent): EventRecord => toRecords('ns', 'batch', HEAD, [of], () => SALT)[0] as EventRecord;
/** Records have no prototype that matters, and no undefined. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe.each(Object.keys(BODIES) as EventKind[])('%s', (kind) => {
  it('comes back as it went in, by way of the stored row (P7)', () => {
    fc.assert(
      fc.property(event(kind), (given) => {
        const stored = record(given);
        expect(plain(decodeEvent(stored))).toEqual(plain(given));
        // A reader that only copies rows writes the same row again, and so the same hash.
        expect(record(decodeEvent(stored)).hash).toBe(stored.hash);
      }),
      { numRuns: 60 },
    );
  });

  it('is stored as canonical JSON, in whatever order its fields were (RFC 8785)', () => {
    fc.assert(
      fc.property(event(kind), ({ body }) => {
        const stored = encodeBody(body);
        expect(canonicalize(JSON.parse(stored))).toBe(stored);
        const turned = Object.fromEntries(Object.entries(body).reverse()) as unknown as EventBody;
        expect(encodeBody(turned)).toBe(stored);
        expect(JSON.parse(stored)).not.toHaveProperty('kind');
      }),
      { numRuns: 30 },
    );
  });
});

describe('what is stored', () => {
  it('says no more of a lease than differs from the usual', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('doc/x'));
    const stored = JSON.parse(encodeBody((ns.last[0] as DomainEvent).body)) as { lease: { entries: object[] } };
    expect(Object.keys(stored.lease)).not.toContain('waiting');
    expect(Object.keys(stored.lease.entries[0] ?? {})).toEqual(['access', 'actions', 'exclusive', 'resource', 'token']);
  });

  it('is the same for every event that a busy namespace makes', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('deployment/eu'), stable('doc/y'));
    ns.queue('b', optimistic('dns/eu/www'));
    ns.renew(holder, { marker: 'm' });
    ns.release(holder);
    ns.stop('b');
    for (const each of ns.events) expect(plain(decodeEvent(record(each)).body)).toEqual(plain(each.body));
  });

  it('is what the library writes, whatever the order of the names', () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom('9', '10', '__proto__', 'a', 'b'),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(null, true, -0, 1e21, 1.5, undefined, new Date(0)),
        fc.string({ unit: 'binary', maxLength: 4 }),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(name, tie('value'), { maxKeys: 4 }),
        fc.dictionary(name, tie('value'), { maxKeys: 4 }).map(inOrder),
      ),
    }));
    fc.assert(
      fc.property(value, (any) => {
        fc.pre(any !== undefined);
        expect(canonicalJson(any)).toBe(canonicalize(any));
      }),
      { numRuns: 2_000 },
    );
  });

  it('has no form for what is no JSON', () => {
    for (const value of [undefined, Number.NaN, Number.POSITIVE_INFINITY, () => 1]) {
      expect(() => canonicalJson(value)).toThrow();
    }
  });
});

describe('what cannot be read stops the namespace rather than being skipped (P7)', () => {
  const stored = record({
    time: 1,
    actor: '',
    runId: '',
    leaseId: '',
    resources: [],
    requestIds: [],
    body: { kind: 'lease_claimed', leaseId: 'x' },
  });

  it.each([
    ['a kind of a later version', { kind: 'lease_suspended' }],
    ['a later form of the body', { bodyVersion: BODY_VERSION.withoutText + 1 }],
    ['an older form without an upcaster', { bodyVersion: 0 }],
    ['a name every object has', { kind: 'constructor' }],
  ])('%s', (_, changes) => {
    expect(() => decodeEvent({ ...stored, ...changes })).toThrow(UnknownEvent);
  });
});

describe('rows of one append', () => {
  it('follow each other without a gap, each with the hash of the one before (P7)', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('doc/x'));
    const rows = toRecords('ns', 'batch', HEAD, ns.events);
    let { revision, hash } = HEAD;
    for (const row of rows) {
      expect(row).toMatchObject({ revision: revision + 1, prevHash: hash, batchId: 'batch', namespace: 'ns' });
      expect(row.hash).toBe(hashEvent(row));
      revision = row.revision;
      hash = row.hash;
    }
    expect(rows.length).toBe(ns.events.length);
  });
});
