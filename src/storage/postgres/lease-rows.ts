import type { Access, RequestedEntry, RuleLock, Scope, Validation, WriteSetRequest } from '../../domain/entry.js';
import {
  type EndReason,
  type Lease,
  type LeaseEntry,
  type LeaseState,
  type TakeOver,
  underLockDelay,
  type Waiting,
} from '../../domain/lease.js';
import type { EndRefusal } from '../../domain/refusal.js';
import { sharedActions } from '../../domain/shared-actions.js';
import type { Micros } from '../../domain/time.js';
import { StoreError } from '../store.js';
import type { Row } from './row-literals.js';

/**
 * Leases as rows. Of the write set, `request`, `entries` and `rule_locks` are JSON in a compact form: arrays by
 * position, with defaults cut off at the end, and each different list of actions once. Written out with every name, 8
 * entries take about 2 KB; like this about 0.5 KB, which is what each grant sends, writes to the WAL and reads back when
 * a replica starts (100,000 times). Positions are only ever added at the end: an older row then has the default there.
 */

/** A row of writ.lease joined with its writ.lease_write_set. */
export interface LeaseRow {
  readonly lease_id: string;
  readonly run_id: string;
  readonly state: LeaseState;
  readonly generation: number;
  readonly requested_ttl_us: Micros | null;
  readonly ttl_us: Micros;
  readonly max_ttl_us: Micros;
  readonly created_at_us: Micros;
  readonly granted_at_us: Micros | null;
  readonly expires_at_us: Micros | null;
  readonly max_expires_at_us: Micros | null;
  readonly progress_window_us: Micros | null;
  readonly progress_marker: string | null;
  readonly progress_at_us: Micros | null;
  readonly claim_by_us: Micros | null;
  readonly queued_at: number | null;
  readonly waits_until_us: Micros | null;
  readonly attached_until_us: Micros | null;
  readonly attachment: number | null;
  readonly attached: boolean | null;
  readonly end_reason: EndReason | null;
  readonly ended_at_us: Micros | null;
  /** JSON. */
  readonly end_refusal: string | null;
  readonly credentials_until_us: Micros | null;
  readonly lock_delay_until_us: Micros | null;
  readonly lock_delayed: boolean;
  /** Empty: of none. */
  readonly delegated_from: string;
  /** Null with all that follow: the write set is missing. */
  readonly idempotency_key: string | null;
  readonly purpose: string | null;
  readonly request: string | null;
  readonly entries: string | null;
  readonly rule_locks: string | null;
  /** JSON; null also: it was acquired. */
  readonly take_over: string | null;
}

/** A writ.lease_row, in the order of its columns. */
export function leaseColumns(lease: Lease): Row {
  const { waiting } = lease;
  return {
    lease_id: lease.leaseId,
    run_id: lease.runId,
    state: lease.state,
    generation: lease.generation,
    requested_ttl_us: lease.requestedTtl,
    ttl_us: lease.ttl,
    max_ttl_us: lease.maxTtl,
    created_at_us: lease.createdAt,
    granted_at_us: lease.grantedAt,
    expires_at_us: lease.expiresAt,
    max_expires_at_us: lease.maxExpiresAt,
    progress_window_us: lease.progressWindow,
    progress_marker: lease.progressMarker,
    progress_at_us: lease.progressAt,
    claim_by_us: lease.claimBy,
    queued_at: waiting?.queuedAt ?? null,
    waits_until_us: waiting?.waitsUntil ?? null,
    attached_until_us: waiting?.attachedUntil ?? null,
    attachment: waiting?.attachment ?? null,
    attached: waiting?.attached ?? null,
    end_reason: lease.endReason,
    ended_at_us: lease.endedAt,
    end_refusal: lease.endRefusal === null ? null : JSON.stringify(lease.endRefusal),
    credentials_until_us: lease.credentialsUntil,
    lock_delay_until_us: lease.lockDelay?.until ?? null,
    lock_delayed: underLockDelay(lease),
    delegated_from: lease.delegatedFrom,
  };
}

/** A writ.lease_write_set_row, in the order of its columns. */
export function writeSetColumns(lease: Lease): Row {
  return {
    lease_id: lease.leaseId,
    idempotency_key: lease.idempotencyKey,
    purpose: lease.purpose,
    request: lease.request === null ? null : JSON.stringify(packRequest(lease.request)),
    entries: JSON.stringify(packEntries(lease.entries)),
    rule_locks: lease.ruleLocks.length === 0 ? '[]' : JSON.stringify(lease.ruleLocks.map(packRuleLock)),
    take_over: lease.takeOver === null ? null : JSON.stringify(lease.takeOver),
  };
}

export function leaseFromRow(row: LeaseRow): Lease {
  const { idempotency_key: idempotencyKey, purpose, entries, rule_locks: ruleLocks } = row;
  if (idempotencyKey === null || purpose === null || entries === null || ruleLocks === null) {
    throw new StoreError('bug', `lease ${row.lease_id} has no write set`);
  }
  return {
    leaseId: row.lease_id,
    runId: row.run_id,
    idempotencyKey,
    delegatedFrom: row.delegated_from,
    state: row.state,
    generation: row.generation,
    request: row.request === null ? null : unpackRequest(JSON.parse(row.request) as PackedRequest),
    purpose,
    entries: unpackEntries(JSON.parse(entries) as PackedEntries),
    ruleLocks: ruleLocks === '[]' ? [] : (JSON.parse(ruleLocks) as PackedRuleLock[]).map(unpackRuleLock),
    requestedTtl: row.requested_ttl_us,
    ttl: row.ttl_us,
    createdAt: row.created_at_us,
    grantedAt: row.granted_at_us,
    expiresAt: row.expires_at_us,
    maxExpiresAt: row.max_expires_at_us,
    maxTtl: row.max_ttl_us,
    progressWindow: row.progress_window_us,
    progressMarker: row.progress_marker,
    progressAt: row.progress_at_us,
    claimBy: row.claim_by_us,
    credentialsUntil: row.credentials_until_us,
    waiting: waitingFromRow(row),
    endReason: row.end_reason,
    endedAt: row.ended_at_us,
    endRefusal: row.end_refusal === null ? null : (JSON.parse(row.end_refusal) as EndRefusal),
    lockDelay: row.lock_delay_until_us === null ? null : { until: row.lock_delay_until_us, over: !row.lock_delayed },
    takeOver: row.take_over === null ? null : (JSON.parse(row.take_over) as TakeOver),
  };
}

function waitingFromRow(row: LeaseRow): Waiting | null {
  const {
    queued_at: queuedAt,
    waits_until_us: waitsUntil,
    attached_until_us: attachedUntil,
    attachment,
    attached,
  } = row;
  if (queuedAt === null || waitsUntil === null || attachedUntil === null || attachment === null || attached === null) {
    return null;
  }
  return { queuedAt, waitsUntil, attachedUntil, attachment, attached };
}

// ------------------------------------------------------------------------------------------------- the compact form

type PackedEntry = readonly [
  resource: string,
  access: Access,
  scope: Scope,
  /** Index of the list of actions. */
  actions: number,
  token: number,
  exclusive?: 0 | 1,
  impliedBy?: string,
  resolver?: string,
  observedVersion?: string | null,
  observe?: 0 | 1,
  observedRefusal?: string | null,
  validation?: number,
  maxViewAge?: Micros,
  suspended?: 0 | 1,
];
type PackedEntries = readonly [actions: readonly (readonly string[])[], ...entries: PackedEntry[]];
type PackedRequestedEntry = readonly [
  resource: string,
  access: Access,
  scope: Scope,
  actions?: readonly string[],
  observedVersion?: string | null,
];
type PackedRequest = readonly [
  entries: readonly PackedRequestedEntry[],
  task?: readonly [name: string, parameters: Readonly<Record<string, string>>] | null,
  resourceSet?: string | null,
];
type PackedRuleLock = readonly [key: string, mode: RuleLock['mode'], rule: string, entry: number];

/** Cuts the values off the end that are what a reader assumes anyway. */
function trimmed(values: unknown[], defaults: readonly unknown[]): unknown[] {
  const required = values.length - defaults.length;
  let length = values.length;
  while (length > required && values[length - 1] === defaults[length - 1 - required]) length -= 1;
  values.length = length;
  return values;
}

const ENTRY_DEFAULTS = [0, '', '', null, 0, null, 0, 0, 0] as const;
/** By the number that stands for it. */
const VALIDATIONS: readonly Validation[] = ['introspect', 'local', 'view'];

function packEntries(entries: readonly LeaseEntry[]): unknown[] {
  const lists: (readonly string[])[] = [];
  const indexes = new Map<string, number>();
  const indexOf = (actions: readonly string[]): number => {
    const key = JSON.stringify(actions);
    const known = indexes.get(key);
    if (known !== undefined) return known;
    indexes.set(key, lists.length);
    return lists.push(actions) - 1;
  };
  return [lists, ...entries.map((entry) => packEntry(entry, indexOf(entry.actions)))];
}

function packEntry(entry: LeaseEntry, actions: number): unknown[] {
  // JSON would write NaN as null, and no column checks what is inside.
  if (!Number.isSafeInteger(entry.token)) {
    throw new StoreError('bad_data', `the token of ${entry.resource} is not an exact integer: ${entry.token}`);
  }
  return trimmed(
    [
      entry.resource,
      entry.access,
      entry.scope,
      actions,
      entry.token,
      entry.exclusive ? 1 : 0,
      entry.impliedBy,
      entry.resolver,
      entry.observedVersion,
      entry.mode === 'observe' ? 1 : 0,
      entry.observedRefusal,
      VALIDATIONS.indexOf(entry.validation),
      entry.maxViewAge,
      entry.suspended ? 1 : 0,
    ],
    ENTRY_DEFAULTS,
  );
}

function unpackEntries([lists, ...packed]: PackedEntries): LeaseEntry[] {
  const actions = lists.map(sharedActions);
  return packed.map((entry) => unpackEntry(entry, actions[entry[3]] ?? []));
}

function unpackEntry(packed: PackedEntry, actions: readonly string[]): LeaseEntry {
  return {
    resource: packed[0],
    access: packed[1],
    scope: packed[2],
    actions,
    exclusive: packed[5] === 1,
    impliedBy: packed[6] ?? '',
    mode: packed[9] === 1 ? 'observe' : 'enforce',
    validation: VALIDATIONS[packed[11] ?? 0] ?? 'local',
    maxViewAge: packed[12] ?? 0,
    resolver: packed[7] ?? '',
    observedVersion: packed[8] ?? null,
    token: packed[4],
    suspended: packed[13] === 1,
    observedRefusal: packed[10] ?? null,
  };
}

function packRequest(request: WriteSetRequest): unknown[] {
  const entries = request.entries.map((entry) => {
    const values = [entry.resource, entry.access, entry.scope, entry.actions, entry.observedVersion];
    return trimmed(values, [undefined, null]);
  });
  const task = request.task === null ? null : [request.task.name, request.task.parameters];
  return trimmed([entries, task, request.resourceSet], [null, null]);
}

function unpackRequest([entries, task, resourceSet]: PackedRequest): WriteSetRequest {
  return {
    entries: entries.map(unpackRequestedEntry),
    task: task == null ? null : { name: task[0], parameters: task[1] },
    resourceSet: resourceSet ?? null,
  };
}

function unpackRequestedEntry(packed: PackedRequestedEntry): RequestedEntry {
  const [resource, access, scope, actions, observedVersion] = packed;
  return { resource, access, scope, actions: actions ?? [], observedVersion: observedVersion ?? null };
}

const packRuleLock = (lock: RuleLock): PackedRuleLock => [lock.key, lock.mode, lock.rule, lock.entry];

function unpackRuleLock([key, mode, rule, entry]: PackedRuleLock): RuleLock {
  return { key, mode, rule, entry };
}
