import type { ReportedWrite } from '../domain/admission.js';
import type { DomainEvent, EventBody, LeaseAmended } from '../domain/event.js';
import type { Lease, LeaseEntry } from '../domain/lease.js';
import type { Run } from '../domain/run.js';
import { sharedActions } from '../domain/shared-actions.js';
import type { EventRecord } from '../storage/store.js';
import { canonicalJson } from './canonical-json.js';
import { withText } from './event-texts.js';

/**
 * The forms of bodies: 1 has any text in its place, 2 has the salted hash of a free text there (see event-texts.ts). A
 * body without free text is the same in both, and is written as 1. Unknown ones stop the namespace.
 */
export const BODY_VERSION = { plain: 1, withoutText: 2 } as const;

const READABLE: ReadonlySet<number> = new Set(Object.values(BODY_VERSION));

const ENTRY_DEFAULTS = {
  scope: 'exact',
  actions: [],
  impliedBy: '',
  mode: 'enforce',
  validation: 'introspect',
  maxViewAge: 0,
  resolver: '',
  observedVersion: null,
  observedRefusal: null,
  suspended: false,
  token: 0,
} as const satisfies Partial<LeaseEntry>;

const LEASE_DEFAULTS = {
  delegatedFrom: '',
  request: null,
  purpose: '',
  ruleLocks: [],
  requestedTtl: null,
  grantedAt: null,
  expiresAt: null,
  maxExpiresAt: null,
  progressWindow: null,
  progressMarker: null,
  progressAt: null,
  claimBy: null,
  credentialsUntil: null,
  waiting: null,
  endReason: null,
  endedAt: null,
  endRefusal: null,
  lockDelay: null,
  takeOver: null,
} as const satisfies Partial<Lease>;

// Every field of a record in one order, and then what was told: see leaseEntry in domain/lease.ts for why.
const ANY_ENTRY: LeaseEntry = { resource: '', access: 'write', exclusive: false, ...ENTRY_DEFAULTS };
const ANY_LEASE: Lease = {
  leaseId: '',
  runId: '',
  idempotencyKey: '',
  state: 'active',
  generation: 1,
  entries: [],
  ttl: 0,
  createdAt: 0,
  maxTtl: 0,
  ...LEASE_DEFAULTS,
};

const RUN_DEFAULTS: Partial<Run> = { initiatorVerified: false, parentRunId: '', maxTtl: null, endsAs: null };

const AMENDED_DEFAULTS = { times: null, left: null, binding: null } as const satisfies Partial<LeaseAmended>;

const REPORT_DEFAULTS = {
  admissionId: '',
  observedVersion: null,
  newVersion: null,
  changedFields: [],
  contradicts: false,
} as const satisfies Partial<ReportedWrite>;

// What each grant writes has its names in the order of canonical JSON (see canonical-json.ts).
const namesOf = <T extends object>(record: T): readonly (keyof T)[] => Object.keys(record).sort() as (keyof T)[];

const ENTRY_NAMES = namesOf(ANY_ENTRY);
const LEASE_NAMES = namesOf(ANY_LEASE);

/** What a record says beyond the defaults: a log of millions of grants is read by people and paid for by byte. */
function compact<T extends object>(record: T, defaults: Partial<T>, names = namesOf(record)): Partial<T> {
  const told: Partial<T> = {};
  for (const key of names) {
    const value = record[key];
    const usual = defaults[key];
    const same =
      Array.isArray(value) && Array.isArray(usual) ? value.length === 0 && usual.length === 0 : value === usual;
    if (!same) told[key] = value;
  }
  return told;
}

const inOrder = (record: object): object => compact(record, {});

const compactEntry = (entry: LeaseEntry): object => compact(entry, ENTRY_DEFAULTS, ENTRY_NAMES);

function compactLease(lease: Lease): object {
  return { ...compact(lease, LEASE_DEFAULTS, LEASE_NAMES), entries: lease.entries.map(compactEntry) };
}

function fullEntry(told: Partial<LeaseEntry>): LeaseEntry {
  return { ...ANY_ENTRY, ...told, actions: sharedActions(told.actions ?? ENTRY_DEFAULTS.actions) };
}

function fullLease(told: Partial<Lease>): Lease {
  return { ...ANY_LEASE, ...told, entries: (told.entries ?? []).map(fullEntry) };
}

/** The body as it is stored and hashed; the kind is a column of its own. */
export function encodeBody(body: EventBody): string {
  const { kind: _, ...rest } = body;
  if (body.kind === 'lease_granted' || body.kind === 'lease_queued') {
    return canonicalJson(inOrder({ ...rest, lease: compactLease(body.lease) }));
  }
  if (body.kind === 'lease_reexpanded') {
    return canonicalJson({ ...rest, entries: body.entries.map(compactEntry) });
  }
  if (body.kind === 'lease_amended') {
    const entries = body.entries.map(compactEntry);
    const left = body.left && { ...body.left, entries: body.left.entries.map(compactEntry) };
    return canonicalJson({ ...compact(rest, AMENDED_DEFAULTS), entries, ...(left && { left }) });
  }
  if (body.kind === 'run_created') return canonicalJson({ ...rest, run: compact(body.run, RUN_DEFAULTS) });
  if (body.kind === 'lease_ended') return canonicalJson(compact(rest, { lockDelayUntil: null }));
  if (body.kind === 'run_state_changed') return canonicalJson(compact(rest, { endsAs: null }));
  if (body.kind === 'writes_reported')
    return canonicalJson({ ...rest, writes: body.writes.map((write) => compact(write, REPORT_DEFAULTS)) });
  if (body.kind === 'database_identified') return canonicalJson(compact(rest, { localKindsFrom: null }));
  return canonicalJson(rest);
}

/** Every kind of event that the log can hold. */
export const EVENT_KINDS: ReadonlySet<string> = new Set<EventBody['kind']>([
  'namespace_created',
  'database_identified',
  'conflict_map_put',
  'run_created',
  'run_state_changed',
  'writes_admitted',
  'writes_reported',
  'doubt_settled',
  'lease_queued',
  'lease_granted',
  'lease_attached',
  'lease_claimed',
  'leases_renewed',
  'renewals_refused',
  'lease_reexpanded',
  'lease_amended',
  'lease_ended',
  'lock_delay_ended',
  'key_bound',
  'acquire_refused',
  'credentials_issued',
  'credentials_refused',
  'credentials_revoked',
  'signing_keys_changed',
  'rehearsal_begun',
  'rehearsal_recorded',
  'write_set_taken_over',
  'pattern_frozen',
  'pattern_thawed',
  'checks_denied',
  'override_reported',
  'resources_unmatched',
  'texts_erased',
  'log_cut',
  'checkpoint_begun',
  'checkpoint_written',
]);

/** An event this version cannot read. The namespace stops on this replica rather than skipping it (P7). */
export class UnknownEvent extends Error {
  override readonly name = 'UnknownEvent';
}

/** The event of a stored record. */
export function decodeEvent(record: EventRecord): DomainEvent {
  if (!EVENT_KINDS.has(record.kind) || !READABLE.has(record.bodyVersion)) {
    throw new UnknownEvent(
      `revision ${record.revision} of ${record.namespace} is of kind ${record.kind} version ${record.bodyVersion}, which this version of Writ cannot read; upgrade this replica`,
    );
  }
  const body = { kind: record.kind, ...(JSON.parse(record.body) as object) } as EventBody;
  return {
    time: record.time,
    actor: record.actor,
    runId: record.runId,
    leaseId: record.leaseId,
    resources: record.resources,
    requestIds: record.requestIds,
    body: restored(record.bodyVersion === BODY_VERSION.withoutText ? withText(body, record.texts) : body),
  };
}

function restored(body: EventBody): EventBody {
  if (body.kind === 'lease_granted' || body.kind === 'lease_queued') return { ...body, lease: fullLease(body.lease) };
  if (body.kind === 'lease_reexpanded') return { ...body, entries: body.entries.map(fullEntry) };
  if (body.kind === 'lease_amended') {
    const { left, ...amended } = { ...AMENDED_DEFAULTS, ...body };
    const entries = amended.entries.map(fullEntry);
    return { ...amended, entries, left: left && { ...left, entries: left.entries.map(fullEntry) } };
  }
  if (body.kind === 'run_created') return { ...body, run: { ...RUN_DEFAULTS, ...body.run } };
  if (body.kind === 'lease_ended') return { ...body, lockDelayUntil: body.lockDelayUntil ?? null };
  if (body.kind === 'run_state_changed') return { ...body, endsAs: body.endsAs ?? null };
  if (body.kind === 'writes_reported')
    return { ...body, writes: body.writes.map((write) => ({ ...REPORT_DEFAULTS, ...write })) };
  if (body.kind === 'database_identified') return { ...body, localKindsFrom: body.localKindsFrom ?? null };
  return body;
}
