import canonicalizeModule from 'canonicalize';
import type { DomainEvent, EventBody } from '../domain/event.js';
import type { Lease, LeaseEntry } from '../domain/lease.js';
import type { Run } from '../domain/run.js';
import { sharedActions } from '../domain/shared-actions.js';
import type { EventRecord } from '../storage/store.js';

/** The form of bodies written now. Older ones are lifted by `upcast`; newer or unknown ones stop the namespace. */
export const BODY_VERSION = 1;

// The package is CommonJS; under NodeNext its default export is typed as the module.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

/** RFC 8785. */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('there is no canonical JSON of this value');
  return text;
}

const ENTRY_DEFAULTS = {
  scope: 'exact',
  actions: [],
  impliedBy: '',
  mode: 'enforce',
  validation: 'introspect',
  resolver: '',
  observedVersion: null,
  observedRefusal: null,
  token: 0,
} as const satisfies Partial<LeaseEntry>;

const LEASE_DEFAULTS = {
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

const RUN_DEFAULTS: Partial<Run> = { initiatorVerified: false, parentRunId: '', maxTtl: null };

/** What a record says beyond the defaults: a log of millions of grants is read by people and paid for by byte. */
function compact<T extends object>(record: T, defaults: Partial<T>): Partial<T> {
  const told: Partial<T> = {};
  for (const key of Object.keys(record) as (keyof T)[]) {
    const value = record[key];
    const usual = defaults[key];
    const same =
      Array.isArray(value) && Array.isArray(usual) ? value.length === 0 && usual.length === 0 : value === usual;
    if (!same) told[key] = value;
  }
  return told;
}

function compactLease(lease: Lease): object {
  return { ...compact(lease, LEASE_DEFAULTS), entries: lease.entries.map((entry) => compact(entry, ENTRY_DEFAULTS)) };
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
    return canonicalJson({ ...rest, lease: compactLease(body.lease) });
  }
  if (body.kind === 'lease_reexpanded') {
    return canonicalJson({ ...rest, entries: body.entries.map((entry) => compact(entry, ENTRY_DEFAULTS)) });
  }
  if (body.kind === 'run_created') return canonicalJson({ ...rest, run: compact(body.run, RUN_DEFAULTS) });
  if (body.kind === 'lease_ended') return canonicalJson(compact(rest, { lockDelayUntil: null }));
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
  'lease_queued',
  'lease_granted',
  'lease_attached',
  'lease_claimed',
  'leases_renewed',
  'lease_reexpanded',
  'lease_ended',
  'lock_delay_ended',
  'key_bound',
  'acquire_refused',
  'credentials_issued',
  'credentials_refused',
  'credentials_revoked',
  'signing_keys_changed',
  'checks_denied',
  'resources_unmatched',
]);

/** An event this version cannot read. The namespace stops on this replica rather than skipping it (P7). */
export class UnknownEvent extends Error {
  override readonly name = 'UnknownEvent';
}

/** The event of a stored record. */
export function decodeEvent(record: EventRecord): DomainEvent {
  if (!EVENT_KINDS.has(record.kind) || record.bodyVersion !== BODY_VERSION) {
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
    body: restored(body),
  };
}

function restored(body: EventBody): EventBody {
  if (body.kind === 'lease_granted' || body.kind === 'lease_queued') return { ...body, lease: fullLease(body.lease) };
  if (body.kind === 'lease_reexpanded') return { ...body, entries: body.entries.map(fullEntry) };
  if (body.kind === 'run_created') return { ...body, run: { ...RUN_DEFAULTS, ...body.run } };
  if (body.kind === 'lease_ended') return { ...body, lockDelayUntil: body.lockDelayUntil ?? null };
  if (body.kind === 'database_identified') return { ...body, localKindsFrom: body.localKindsFrom ?? null };
  return body;
}
