import { createHash, randomUUID } from 'node:crypto';
import type { Admission } from '../../src/domain/admission.js';
import type { KeyBinding } from '../../src/domain/key-binding.js';
import type { Lease, LeaseEntry } from '../../src/domain/lease.js';
import type { Run } from '../../src/domain/run.js';
import { SECOND } from '../../src/domain/time.js';
import type { AppendBatch, EventRecord, Head, MapVersion } from '../../src/storage/store.js';

/**
 * Valid records for tests, each field replaceable. Hashes are 64 hexadecimal digits that follow from the record; the
 * real ones are the engine's.
 */

/** 2026-01-01T00:00:00Z in microseconds: a moment in the past of every test's database clock. */
export const SAMPLE_TIME = 1_767_225_600_000_000;

const ZERO_HASH = '0'.repeat(64);

export function sampleHash(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

export function sampleEntry(overrides: Partial<LeaseEntry> = {}): LeaseEntry {
  return {
    resource: 'release/prod-eu',
    access: 'write',
    scope: 'exact',
    actions: ['promote'],
    exclusive: true,
    impliedBy: '',
    mode: 'enforce',
    validation: 'introspect',
    maxViewAge: 0,
    resolver: '',
    observedVersion: null,
    token: SAMPLE_TIME,
    suspended: false,
    observedRefusal: null,
    ...overrides,
  };
}

/** `count` disjoint entries below one ancestor. */
export function sampleEntries(count: number, prefix: string, token = SAMPLE_TIME): LeaseEntry[] {
  return Array.from({ length: count }, (_, index) =>
    sampleEntry({ resource: `tenant/${prefix}/part-${index}`, token: token + index }),
  );
}

/** An active lease of two entries. */
export function sampleLease(overrides: Partial<Lease> = {}): Lease {
  const leaseId = overrides.leaseId ?? `lease-${randomUUID()}`;
  return {
    leaseId,
    runId: 'run-1',
    idempotencyKey: `key-of-${leaseId}`,
    delegatedFrom: '',
    state: 'active',
    generation: 1,
    request: null,
    purpose: 'promote build 42',
    entries: sampleEntries(2, leaseId),
    ruleLocks: [],
    requestedTtl: null,
    ttl: 60 * SECOND,
    createdAt: SAMPLE_TIME,
    grantedAt: SAMPLE_TIME,
    expiresAt: SAMPLE_TIME + 60 * SECOND,
    maxExpiresAt: SAMPLE_TIME + 1_800 * SECOND,
    maxTtl: 300 * SECOND,
    progressWindow: 600 * SECOND,
    progressMarker: null,
    progressAt: SAMPLE_TIME,
    claimBy: null,
    credentialsUntil: null,
    waiting: null,
    endReason: null,
    endedAt: null,
    endRefusal: null,
    lockDelay: null,
    takeOver: null,
    ...overrides,
  };
}

/** A lease that waits, with the request it will be decided on. */
export function sampleWaiter(overrides: Partial<Lease> = {}): Lease {
  return sampleLease({
    state: 'waiting',
    request: {
      entries: [
        { resource: 'release/prod-eu', access: 'write', scope: 'exact', actions: [], observedVersion: null },
        { resource: 'dns/prod-eu', access: 'stable_read', scope: 'subtree', actions: [], observedVersion: '41' },
      ],
      task: null,
      resourceSet: null,
    },
    entries: [sampleEntry({ token: 0 })],
    grantedAt: null,
    expiresAt: null,
    maxExpiresAt: null,
    progressAt: null,
    waiting: {
      queuedAt: 2,
      waitsUntil: SAMPLE_TIME + 20 * SECOND,
      attachedUntil: SAMPLE_TIME + 10 * SECOND,
      attachment: 1,
      attached: true,
    },
    ...overrides,
  });
}

/** The same lease, ended. */
export function sampleEnded(lease: Lease, overrides: Partial<Lease> = {}): Lease {
  return {
    ...lease,
    state: 'ended',
    waiting: null,
    endReason: 'released',
    endedAt: SAMPLE_TIME + SECOND,
    ...overrides,
  };
}

export function sampleAdmission(overrides: Partial<Admission> = {}): Admission {
  return {
    admissionId: 'admission-1',
    leaseId: 'lease-1',
    runId: 'run-1',
    resource: 'release/prod-eu',
    action: 'promote',
    token: SAMPLE_TIME,
    requestId: 'request-1',
    observedVersion: null,
    target: 'svc:release',
    admittedAt: SAMPLE_TIME,
    inDoubtSince: null,
    unsure: false,
    outcome: null,
    ...overrides,
  };
}

export function sampleRun(overrides: Partial<Run> = {}): Run {
  return {
    runId: 'run-1',
    idempotencyKey: 'create-run-1',
    state: 'active',
    stateReason: '',
    blockCause: null,
    endsAs: null,
    purpose: 'promote build 42',
    goalRevision: 'ticket-7',
    initiator: 'alice',
    initiatorVerified: true,
    parentRunId: '',
    maxTtl: null,
    principal: 'runner:ci',
    allowed: [{ pattern: 'release/{env}', actions: ['*'] }],
    authorityEndsAt: SAMPLE_TIME + 86_400 * SECOND,
    escalation: ['group:release'],
    createdAt: SAMPLE_TIME,
    endedAt: null,
    ...overrides,
  };
}

export function sampleKey(overrides: Partial<KeyBinding> = {}): KeyBinding {
  return {
    scope: 'run:run-1',
    key: 'acquire-1',
    use: 'acquire',
    fingerprint: sampleHash('fingerprint'),
    runId: 'run-1',
    leaseId: 'lease-1',
    boundAt: SAMPLE_TIME,
    ...overrides,
  };
}

export function sampleMapVersion(overrides: Partial<MapVersion> = {}): MapVersion {
  return {
    version: 1,
    text: '# comment kept\nversion: 1\nkinds: []\n',
    document: '{"kinds":[],"version":1}',
    author: 'admin:root',
    reason: 'first',
    createdAt: SAMPLE_TIME,
    ...overrides,
  };
}

/** The event after `head`; null: the first of the namespace. */
export function sampleEvent(namespace: string, head: Head | null, overrides: Partial<EventRecord> = {}): EventRecord {
  const revision = (head?.revision ?? 0) + 1;
  const batchId = overrides.batchId ?? randomUUID();
  return {
    namespace,
    revision,
    time: SAMPLE_TIME + revision,
    batchId,
    kind: head === null ? 'namespace_created' : 'lease_granted',
    bodyVersion: 1,
    actor: 'runner:ci',
    runId: '',
    leaseId: '',
    resources: [],
    requestIds: [],
    body: JSON.stringify({ sample: revision }),
    prevHash: head?.hash ?? ZERO_HASH,
    hash: sampleHash(namespace, revision, batchId),
    texts: [],
    ...overrides,
  };
}

/** The head after these events. */
export function headAfter(events: readonly EventRecord[]): Head {
  const last = events.at(-1);
  if (last === undefined) throw new Error('no events');
  return { revision: last.revision, hash: last.hash, time: last.time };
}

/** `count` events after `head`, chained, of one batch. */
export function sampleEvents(
  namespace: string,
  head: Head | null,
  count: number,
  overrides: Partial<EventRecord> = {},
): EventRecord[] {
  const batchId = overrides.batchId ?? randomUUID();
  const events: EventRecord[] = [];
  for (let last = head; events.length < count; last = headAfter(events)) {
    events.push(sampleEvent(namespace, last, { ...overrides, batchId }));
  }
  return events;
}

/** A batch of one event after `head` unless `events` says otherwise; everything else is empty. */
export function sampleBatch(namespace: string, head: Head | null, overrides: Partial<AppendBatch> = {}): AppendBatch {
  const events = overrides.events ?? sampleEvents(namespace, head, 1);
  return {
    namespace,
    batchId: events[0]?.batchId ?? randomUUID(),
    expectedHead: head,
    identity: null,
    events,
    leases: [],
    runs: [],
    keys: [],
    unmatched: [],
    revocations: [],
    admissions: [],
    rehearsals: [],
    freezes: [],
    thawed: [],
    mapVersion: null,
    newKeys: [],
    reliedOnAsPast: null,
    reliedOnAsFuture: null,
    ...overrides,
  };
}
