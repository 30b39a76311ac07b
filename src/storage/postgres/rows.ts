import type { Revocation, RevokedSubject } from '../../domain/credential.js';
import type { Allowance, Scope } from '../../domain/entry.js';
import type { Freeze } from '../../domain/freeze.js';
import type { KeyBinding, KeyUse } from '../../domain/key-binding.js';
import type { KindRehearsal, Rehearsal, RehearsalWindow } from '../../domain/rehearsal.js';
import type { BlockCause, EndedRunState, Run, RunState } from '../../domain/run.js';
import type { Micros } from '../../domain/time.js';
import type { EventRecord, EventText, MapVersion, UnmatchedResource } from '../store.js';
import type { Row } from './row-literals.js';

/** Rows of the smaller records, and of the log; leases are in lease-rows.ts. */

export interface EventRow {
  readonly namespace: string;
  readonly revision: number;
  readonly time_us: Micros;
  readonly batch_id: string;
  readonly kind: string;
  readonly body_version: number;
  readonly actor: string;
  readonly run_id: string;
  readonly lease_id: string;
  readonly resources: string[];
  readonly request_ids: string[];
  readonly body: string;
  readonly prev_hash: string;
  readonly hash: string;
  /** JSON array; null: none, or erased. */
  readonly texts: string | null;
}

/** A writ.event_row, in the order of its columns: all but the body, which travels on its own (see append.ts). */
export function eventColumns(event: EventRecord): Row {
  return {
    revision: event.revision,
    time_us: event.time,
    batch_id: event.batchId,
    kind: event.kind,
    body_version: event.bodyVersion,
    actor: event.actor,
    run_id: event.runId,
    lease_id: event.leaseId,
    resources: event.resources,
    request_ids: event.requestIds,
    prev_hash: `\\x${event.prevHash}`,
    hash: `\\x${event.hash}`,
  };
}

export function eventFromRow(row: EventRow): EventRecord {
  return {
    namespace: row.namespace,
    revision: row.revision,
    time: row.time_us,
    batchId: row.batch_id,
    kind: row.kind,
    bodyVersion: row.body_version,
    actor: row.actor,
    runId: row.run_id,
    leaseId: row.lease_id,
    resources: row.resources,
    requestIds: row.request_ids,
    body: row.body,
    prevHash: row.prev_hash,
    hash: row.hash,
    texts: row.texts === null ? NO_TEXTS : (JSON.parse(row.texts) as EventText[]),
  };
}

const NO_TEXTS: readonly EventText[] = [];

/** Free text of the events of a batch. */
export function textColumns({ revision, texts }: EventRecord): Record<string, unknown>[] {
  return texts.map(({ digest, salt, text }) => ({ revision, digest: `\\x${digest}`, salt: `\\x${salt}`, text }));
}

export interface RunRow {
  readonly run_id: string;
  readonly idempotency_key: string;
  readonly state: RunState;
  readonly state_reason: string;
  readonly block_cause: BlockCause | null;
  readonly purpose: string;
  readonly goal_revision: string;
  readonly initiator: string;
  readonly initiator_verified: boolean;
  readonly principal: string;
  readonly parent_run_id: string;
  readonly max_ttl_us: Micros | null;
  readonly allowed: string;
  readonly escalation: string;
  readonly authority_ends_at_us: Micros;
  readonly created_at_us: Micros;
  readonly ended_at_us: Micros | null;
  readonly ends_as: EndedRunState | null;
}

export function runColumns(run: Run): RunRow {
  return {
    run_id: run.runId,
    idempotency_key: run.idempotencyKey,
    state: run.state,
    state_reason: run.stateReason,
    block_cause: run.blockCause,
    purpose: run.purpose,
    goal_revision: run.goalRevision,
    initiator: run.initiator,
    initiator_verified: run.initiatorVerified,
    principal: run.principal,
    parent_run_id: run.parentRunId,
    max_ttl_us: run.maxTtl,
    allowed: JSON.stringify(run.allowed),
    escalation: JSON.stringify(run.escalation),
    authority_ends_at_us: run.authorityEndsAt,
    created_at_us: run.createdAt,
    ended_at_us: run.endedAt,
    ends_as: run.endsAs,
  };
}

export function runFromRow(row: RunRow): Run {
  return {
    runId: row.run_id,
    idempotencyKey: row.idempotency_key,
    state: row.state,
    stateReason: row.state_reason,
    blockCause: row.block_cause,
    endsAs: row.ends_as,
    purpose: row.purpose,
    goalRevision: row.goal_revision,
    initiator: row.initiator,
    initiatorVerified: row.initiator_verified,
    principal: row.principal,
    parentRunId: row.parent_run_id,
    maxTtl: row.max_ttl_us,
    allowed: JSON.parse(row.allowed) as Allowance[],
    authorityEndsAt: row.authority_ends_at_us,
    escalation: JSON.parse(row.escalation) as string[],
    createdAt: row.created_at_us,
    endedAt: row.ended_at_us,
  };
}

export interface KeyRow {
  readonly scope: string;
  readonly key: string;
  readonly use: KeyUse;
  readonly fingerprint: string;
  readonly run_id: string;
  readonly lease_id: string;
  readonly bound_at_us: Micros;
  /** JSON. */
  readonly stopped: string | null;
  readonly effective_at_us: Micros | null;
}

/** A writ.key_binding_row, in the order of its columns. */
export function keyColumns(binding: KeyBinding): KeyRow {
  return {
    scope: binding.scope,
    key: binding.key,
    use: binding.use,
    fingerprint: binding.fingerprint,
    run_id: binding.runId,
    lease_id: binding.leaseId,
    bound_at_us: binding.boundAt,
    stopped: binding.stopped === undefined ? null : JSON.stringify(binding.stopped),
    effective_at_us: binding.effectiveAt ?? null,
  };
}

export function keyFromRow(row: KeyRow): KeyBinding {
  return {
    scope: row.scope,
    key: row.key,
    use: row.use,
    fingerprint: row.fingerprint,
    runId: row.run_id,
    leaseId: row.lease_id,
    boundAt: row.bound_at_us,
    ...(row.stopped !== null && { stopped: JSON.parse(row.stopped) as string[] }),
    ...(row.effective_at_us !== null && { effectiveAt: row.effective_at_us }),
  };
}

export interface MapVersionRow {
  readonly version: number;
  readonly text: string;
  readonly document: string;
  readonly author: string;
  readonly reason: string;
  readonly created_at_us: Micros;
}

export function mapVersionColumns(map: MapVersion): MapVersionRow {
  return {
    version: map.version,
    text: map.text,
    document: map.document,
    author: map.author,
    reason: map.reason,
    created_at_us: map.createdAt,
  };
}

export function mapVersionFromRow(row: MapVersionRow): MapVersion {
  return {
    version: row.version,
    text: row.text,
    document: row.document,
    author: row.author,
    reason: row.reason,
    createdAt: row.created_at_us,
  };
}

export interface UnmatchedRow {
  readonly resource: string;
  readonly times: number;
  readonly last_seen_at_us: Micros;
}

export function unmatchedColumns(unmatched: UnmatchedResource): UnmatchedRow {
  return { resource: unmatched.resource, times: unmatched.times, last_seen_at_us: unmatched.lastSeenAt };
}

export function unmatchedFromRow(row: UnmatchedRow): UnmatchedResource {
  return { resource: row.resource, times: row.times, lastSeenAt: row.last_seen_at_us };
}

export interface RevocationRow {
  readonly subject: string;
  readonly revoked_at_us: Micros;
  readonly until_us: Micros;
}

export function revocationColumns(revocation: Revocation): RevocationRow {
  return { subject: revocation.subject, revoked_at_us: revocation.revokedAt, until_us: revocation.until };
}

export function revocationFromRow(row: RevocationRow): Revocation {
  return { subject: row.subject as RevokedSubject, revokedAt: row.revoked_at_us, until: row.until_us };
}

export interface RehearsalRow {
  readonly pattern: string;
  /** JSON. */
  readonly last: string | null;
  /** JSON. */
  readonly window_open: string | null;
}

export function rehearsalColumns({ pattern, last, window }: KindRehearsal): RehearsalRow {
  const text = (value: object | null) => (value === null ? null : JSON.stringify(value));
  return { pattern, last: text(last), window_open: text(window) };
}

export function rehearsalFromRow(row: RehearsalRow): KindRehearsal {
  return {
    pattern: row.pattern,
    last: row.last === null ? null : (JSON.parse(row.last) as Rehearsal),
    window: row.window_open === null ? null : (JSON.parse(row.window_open) as RehearsalWindow),
  };
}

export interface FreezeRow {
  readonly pattern: string;
  readonly scope: Scope;
  readonly denies_checks: boolean;
  readonly reason: string;
  readonly frozen_by: string;
  readonly frozen_at_us: Micros;
  readonly until_us: Micros | null;
  readonly effective_at_us: Micros;
}

export function freezeColumns(freeze: Freeze): FreezeRow {
  return {
    pattern: freeze.pattern,
    scope: freeze.scope,
    denies_checks: freeze.deniesChecks,
    reason: freeze.reason,
    frozen_by: freeze.frozenBy,
    frozen_at_us: freeze.frozenAt,
    until_us: freeze.until,
    effective_at_us: freeze.effectiveAt,
  };
}

export function freezeFromRow(row: FreezeRow): Freeze {
  return {
    pattern: row.pattern,
    scope: row.scope,
    deniesChecks: row.denies_checks,
    reason: row.reason,
    frozenBy: row.frozen_by,
    frozenAt: row.frozen_at_us,
    until: row.until_us,
    effectiveAt: row.effective_at_us,
  };
}
