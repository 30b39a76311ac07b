import type { WriteResult } from '../../domain/admission.js';
import type { ReportOutcome } from '../../domain/decide/report-writes.js';
import type { Access, Scope, Validation } from '../../domain/entry.js';
import { invalidArgument, type Violation } from '../../domain/fault.js';
import type { FenceReason } from '../../domain/fence.js';
import type { EndReason, LeaseState } from '../../domain/lease.js';
import type { RefusalKind } from '../../domain/refusal.js';
import type { RunState } from '../../domain/run.js';
import type { Micros } from '../../domain/time.js';
import type { Duration } from '../../gen/google/protobuf/duration.js';
import type { Timestamp } from '../../gen/google/protobuf/timestamp.js';
import * as map from '../../gen/writ/v1/conflict_map_service.js';
import * as fence from '../../gen/writ/v1/fence_service.js';
import * as lease from '../../gen/writ/v1/lease_service.js';
import * as run from '../../gen/writ/v1/run_service.js';
import * as types from '../../gen/writ/v1/types.js';
import type { OnLiveConflict, Page, ReleaseOutcome } from '../../services/api.js';

/**
 * The wire's scalars and the domain's: times in integer microseconds, enums as words, 64-bit numbers
 * as doubles, which hold them exactly below 2^53. What the wire can say and the domain cannot is a
 * violation, named by the field's name in the proto.
 */

// ------------------------------------------------------------------------------------ to the wire

const MICROS_PER_SECOND = 1_000_000;
const NANOS_PER_MICRO = 1000;

/** Exact. */
export function toTimestamp(micros: Micros): Timestamp {
  const seconds = Math.floor(micros / MICROS_PER_SECOND);
  return { seconds: BigInt(seconds), nanos: (micros - seconds * MICROS_PER_SECOND) * NANOS_PER_MICRO };
}

/** Exact. */
export function toDuration(micros: Micros): Duration {
  const seconds = Math.trunc(micros / MICROS_PER_SECOND);
  return { seconds: BigInt(seconds), nanos: (micros - seconds * MICROS_PER_SECOND) * NANOS_PER_MICRO };
}

export function toOptionalTimestamp(micros: Micros | null): Timestamp | undefined {
  return micros === null ? undefined : toTimestamp(micros);
}

export function toOptionalDuration(micros: Micros | null): Duration | undefined {
  return micros === null ? undefined : toDuration(micros);
}

export const ACCESS_TO_WIRE: Readonly<Record<Access, types.Access>> = {
  read: types.Access.ACCESS_READ,
  stable_read: types.Access.ACCESS_STABLE_READ,
  write: types.Access.ACCESS_WRITE,
};

export const SCOPE_TO_WIRE: Readonly<Record<Scope, types.Scope>> = {
  exact: types.Scope.SCOPE_EXACT,
  subtree: types.Scope.SCOPE_SUBTREE,
};

export const VALIDATION_TO_WIRE: Readonly<Record<Validation, types.Validation>> = {
  introspect: types.Validation.VALIDATION_INTROSPECT,
  view: types.Validation.VALIDATION_VIEW,
  local: types.Validation.VALIDATION_LOCAL,
};

export const LEASE_STATE_TO_WIRE: Readonly<Record<LeaseState, types.LeaseState>> = {
  waiting: types.LeaseState.LEASE_STATE_WAITING,
  active: types.LeaseState.LEASE_STATE_ACTIVE,
  ended: types.LeaseState.LEASE_STATE_ENDED,
};

const END_REASON_TO_WIRE: Readonly<Record<EndReason, types.EndReason>> = {
  released: types.EndReason.END_REASON_RELEASED,
  expired: types.EndReason.END_REASON_EXPIRED,
  no_progress: types.EndReason.END_REASON_NO_PROGRESS,
  revoked: types.EndReason.END_REASON_REVOKED,
  run_stopped: types.EndReason.END_REASON_RUN_STOPPED,
  run_ended: types.EndReason.END_REASON_RUN_ENDED,
  taken_over: types.EndReason.END_REASON_TAKEN_OVER,
  unclaimed: types.EndReason.END_REASON_UNCLAIMED,
  database_changed: types.EndReason.END_REASON_DATABASE_CHANGED,
  map_changed: types.EndReason.END_REASON_MAP_CHANGED,
  parent_ended: types.EndReason.END_REASON_PARENT_ENDED,
  withdrawn: types.EndReason.END_REASON_WITHDRAWN,
  timed_out: types.EndReason.END_REASON_TIMED_OUT,
  refused: types.EndReason.END_REASON_REFUSED,
};

export function toEndReason(reason: EndReason | null): types.EndReason {
  return reason === null ? types.EndReason.END_REASON_UNSPECIFIED : END_REASON_TO_WIRE[reason];
}

export const REFUSAL_KIND_TO_WIRE: Readonly<Record<RefusalKind, types.RefusalKind>> = {
  held: types.RefusalKind.REFUSAL_KIND_HELD,
  already_held: types.RefusalKind.REFUSAL_KIND_ALREADY_HELD,
  wait_timeout: types.RefusalKind.REFUSAL_KIND_WAIT_TIMEOUT,
  deadlock: types.RefusalKind.REFUSAL_KIND_DEADLOCK,
  lock_delay: types.RefusalKind.REFUSAL_KIND_LOCK_DELAY,
  in_doubt: types.RefusalKind.REFUSAL_KIND_IN_DOUBT,
  undescribed: types.RefusalKind.REFUSAL_KIND_UNDESCRIBED,
  outside_contract: types.RefusalKind.REFUSAL_KIND_OUTSIDE_CONTRACT,
  forbidden: types.RefusalKind.REFUSAL_KIND_FORBIDDEN,
  propose_only: types.RefusalKind.REFUSAL_KIND_PROPOSE_ONLY,
  approval_required: types.RefusalKind.REFUSAL_KIND_APPROVAL_REQUIRED,
  limit: types.RefusalKind.REFUSAL_KIND_LIMIT,
  run_ended: types.RefusalKind.REFUSAL_KIND_RUN_ENDED,
  run_blocked: types.RefusalKind.REFUSAL_KIND_RUN_BLOCKED,
  ended: types.RefusalKind.REFUSAL_KIND_ENDED,
  too_late: types.RefusalKind.REFUSAL_KIND_TOO_LATE,
  max_hold: types.RefusalKind.REFUSAL_KIND_MAX_HOLD,
  no_progress: types.RefusalKind.REFUSAL_KIND_NO_PROGRESS,
  too_short: types.RefusalKind.REFUSAL_KIND_TOO_SHORT,
  audience_not_allowed: types.RefusalKind.REFUSAL_KIND_AUDIENCE_NOT_ALLOWED,
  credentials_revoked: types.RefusalKind.REFUSAL_KIND_CREDENTIALS_REVOKED,
  rehearsal_required: types.RefusalKind.REFUSAL_KIND_REHEARSAL_REQUIRED,
  frozen: types.RefusalKind.REFUSAL_KIND_FROZEN,
};

export const FENCE_REASON_TO_WIRE: Readonly<Record<FenceReason, fence.FenceReason>> = {
  ok: fence.FenceReason.FENCE_REASON_OK,
  stale_token: fence.FenceReason.FENCE_REASON_STALE_TOKEN,
  wrong_target: fence.FenceReason.FENCE_REASON_WRONG_TARGET,
  released: fence.FenceReason.FENCE_REASON_RELEASED,
  expired: fence.FenceReason.FENCE_REASON_EXPIRED,
  no_progress: fence.FenceReason.FENCE_REASON_NO_PROGRESS,
  revoked: fence.FenceReason.FENCE_REASON_REVOKED,
  run_stopped: fence.FenceReason.FENCE_REASON_RUN_STOPPED,
  run_ended: fence.FenceReason.FENCE_REASON_RUN_ENDED,
  taken_over: fence.FenceReason.FENCE_REASON_TAKEN_OVER,
  unclaimed: fence.FenceReason.FENCE_REASON_UNCLAIMED,
  database_changed: fence.FenceReason.FENCE_REASON_DATABASE_CHANGED,
  map_changed: fence.FenceReason.FENCE_REASON_MAP_CHANGED,
  parent_ended: fence.FenceReason.FENCE_REASON_PARENT_ENDED,
  suspended: fence.FenceReason.FENCE_REASON_SUSPENDED,
  not_covered: fence.FenceReason.FENCE_REASON_NOT_COVERED,
  action_not_allowed: fence.FenceReason.FENCE_REASON_ACTION_NOT_ALLOWED,
  wrong_holder: fence.FenceReason.FENCE_REASON_WRONG_HOLDER,
  unknown_lease: fence.FenceReason.FENCE_REASON_UNKNOWN_LEASE,
  future_token: fence.FenceReason.FENCE_REASON_FUTURE_TOKEN,
  version_required: fence.FenceReason.FENCE_REASON_VERSION_REQUIRED,
  frozen: fence.FenceReason.FENCE_REASON_FROZEN,
  in_doubt: fence.FenceReason.FENCE_REASON_IN_DOUBT,
  not_granted: fence.FenceReason.FENCE_REASON_NOT_GRANTED,
  oversize: fence.FenceReason.FENCE_REASON_OVERSIZE,
  malformed: fence.FenceReason.FENCE_REASON_MALFORMED,
  header_not_allowed: fence.FenceReason.FENCE_REASON_HEADER_NOT_ALLOWED,
  alg_not_allowed: fence.FenceReason.FENCE_REASON_ALG_NOT_ALLOWED,
  wrong_type: fence.FenceReason.FENCE_REASON_WRONG_TYPE,
  unknown_key: fence.FenceReason.FENCE_REASON_UNKNOWN_KEY,
  bad_signature: fence.FenceReason.FENCE_REASON_BAD_SIGNATURE,
  wrong_issuer: fence.FenceReason.FENCE_REASON_WRONG_ISSUER,
  claim_missing: fence.FenceReason.FENCE_REASON_CLAIM_MISSING,
  claim_invalid: fence.FenceReason.FENCE_REASON_CLAIM_INVALID,
  wrong_audience: fence.FenceReason.FENCE_REASON_WRONG_AUDIENCE,
  credential_expired: fence.FenceReason.FENCE_REASON_CREDENTIAL_EXPIRED,
  not_yet_valid: fence.FenceReason.FENCE_REASON_NOT_YET_VALID,
  not_bound: fence.FenceReason.FENCE_REASON_NOT_BOUND,
  binding_mismatch: fence.FenceReason.FENCE_REASON_BINDING_MISMATCH,
  credential_revoked: fence.FenceReason.FENCE_REASON_CREDENTIAL_REVOKED,
  no_write_authority: fence.FenceReason.FENCE_REASON_NO_WRITE_AUTHORITY,
};

export const RUN_STATE_TO_WIRE: Readonly<Record<RunState, run.RunState>> = {
  active: run.RunState.RUN_STATE_ACTIVE,
  waiting_for_input: run.RunState.RUN_STATE_WAITING_FOR_INPUT,
  blocked: run.RunState.RUN_STATE_BLOCKED,
  stopping: run.RunState.RUN_STATE_STOPPING,
  stopped: run.RunState.RUN_STATE_STOPPED,
  finished: run.RunState.RUN_STATE_FINISHED,
  failed: run.RunState.RUN_STATE_FAILED,
  expired: run.RunState.RUN_STATE_EXPIRED,
};

export const RELEASE_OUTCOME_TO_WIRE: Readonly<Record<ReleaseOutcome['outcome'], lease.ReleaseOutcome>> = {
  released: lease.ReleaseOutcome.RELEASE_OUTCOME_RELEASED,
  already_ended: lease.ReleaseOutcome.RELEASE_OUTCOME_ALREADY_ENDED,
  nothing_held: lease.ReleaseOutcome.RELEASE_OUTCOME_NOTHING_HELD,
};

export const REPORT_OUTCOME_TO_WIRE: Readonly<Record<ReportOutcome, fence.ReportOutcome>> = {
  closed: fence.ReportOutcome.REPORT_OUTCOME_CLOSED,
  recorded: fence.ReportOutcome.REPORT_OUTCOME_RECORDED,
  already_known: fence.ReportOutcome.REPORT_OUTCOME_ALREADY_KNOWN,
  contradicts: fence.ReportOutcome.REPORT_OUTCOME_CONTRADICTS,
};

// ---------------------------------------------------------------------------------- from the wire

/** A table from wire numbers to words; what is not in it is not accepted. */
function reversed<T extends string>(toWire: Readonly<Record<T, number>>): ReadonlyMap<number, T> {
  return new Map((Object.entries(toWire) as [T, number][]).map(([word, number]) => [number, word]));
}

const ACCESS_FROM_WIRE = reversed(ACCESS_TO_WIRE);
const SCOPE_FROM_WIRE = new Map([...reversed(SCOPE_TO_WIRE), [types.Scope.SCOPE_UNSPECIFIED, 'exact' as const]]);
const FREEZE_SCOPE_FROM_WIRE = new Map([...SCOPE_FROM_WIRE, [types.Scope.SCOPE_UNSPECIFIED, 'subtree' as const]]);
const LEASE_STATE_FROM_WIRE = reversed(LEASE_STATE_TO_WIRE);
const RUN_STATE_FROM_WIRE = reversed(RUN_STATE_TO_WIRE);
const ON_LIVE_CONFLICT_FROM_WIRE: ReadonlyMap<number, OnLiveConflict> = new Map([
  [map.OnLiveConflict.ON_LIVE_CONFLICT_UNSPECIFIED, 'refuse'],
  [map.OnLiveConflict.ON_LIVE_CONFLICT_REFUSE, 'refuse'],
  [map.OnLiveConflict.ON_LIVE_CONFLICT_REVOKE_NEWER, 'revoke_newer'],
  [map.OnLiveConflict.ON_LIVE_CONFLICT_KEEP_UNTIL_END, 'keep_until_end'],
]);
const WRITE_RESULT_FROM_WIRE: ReadonlyMap<number, WriteResult> = new Map([
  [fence.WriteResult.WRITE_RESULT_SUCCEEDED, 'succeeded'],
  [fence.WriteResult.WRITE_RESULT_FAILED, 'failed'],
  [fence.WriteResult.WRITE_RESULT_UNKNOWN, 'unknown'],
]);
const SETTLED_FROM_WIRE: ReadonlyMap<number, boolean> = new Map([
  [lease.SettledOutcome.SETTLED_OUTCOME_HAPPENED, true],
  [lease.SettledOutcome.SETTLED_OUTCOME_DID_NOT_HAPPEN, false],
]);

// The bounds that the well-known types state for themselves.
const MAX_DURATION_SECONDS = 315_576_000_000n;
const MIN_TIMESTAMP_SECONDS = -62_135_596_800n;
/** Violations named in one answer. */
const MAX_VIOLATIONS = 50;
const MAX_TIMESTAMP_SECONDS = 253_402_300_799n;
const MAX_NANOS = 999_999_999;
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);
const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

/**
 * A token as presented. Beyond what a double holds exactly it is Infinity, which is later than any
 * clock: the check answers FUTURE_TOKEN.
 */
export function fromToken(token: bigint): number {
  return token <= MAX_SAFE ? Number(token) : Number.POSITIVE_INFINITY;
}

/** Reads the fields of one request and collects what is wrong with their form; `done` throws it. */
export class RequestReader {
  #violations: Violation[] | undefined;

  /** Notes a violation. */
  wrong(field: string, description: string): void {
    this.#violations ??= [];
    // What is wrong with the first is told; a request made of nothing else must not cost more than that.
    if (this.#violations.length < MAX_VIOLATIONS) this.#violations.push({ field, description });
  }

  /** Throws an invalid argument with all violations, if there are any. */
  done(): void {
    if (this.#violations !== undefined) throw invalidArgument(this.#violations);
  }

  /** Of the entry at this index; the field's name is put together only when it is wrong. */
  access(value: types.Access, field: string, index: number): Access {
    const access = ACCESS_FROM_WIRE.get(value);
    if (access !== undefined) return access;
    this.#wrongWord(value, `${field}[${index}].access`, 'ACCESS_READ, ACCESS_STABLE_READ or ACCESS_WRITE');
    return 'read';
  }

  /** Of the entry at this index of the list. Unset is exact. */
  scope(value: types.Scope, field: string, index: number): Scope {
    const scope = SCOPE_FROM_WIRE.get(value);
    if (scope !== undefined) return scope;
    this.#wrongWord(value, `${field}[${index}].scope`, 'SCOPE_EXACT or SCOPE_SUBTREE');
    return 'exact';
  }

  /** Of a freeze: unset is the subtree. */
  freezeScope(value: types.Scope, field: string): Scope {
    return this.#word(FREEZE_SCOPE_FROM_WIRE, value, field, 'SCOPE_EXACT or SCOPE_SUBTREE') ?? 'subtree';
  }

  leaseStates(values: readonly types.LeaseState[], field: string): LeaseState[] {
    return this.#words(LEASE_STATE_FROM_WIRE, values, field, 'a LeaseState');
  }

  runStates(values: readonly run.RunState[], field: string): RunState[] {
    return this.#words(RUN_STATE_FROM_WIRE, values, field, 'a RunState');
  }

  runState(value: run.RunState, field: string): RunState {
    return this.#word(RUN_STATE_FROM_WIRE, value, field, 'a RunState') ?? 'active';
  }

  /** Unset is refuse. */
  onLiveConflict(value: map.OnLiveConflict, field: string): OnLiveConflict {
    return this.#word(ON_LIVE_CONFLICT_FROM_WIRE, value, field, 'an OnLiveConflict') ?? 'refuse';
  }

  writeResult(value: fence.WriteResult, field: string): WriteResult {
    return this.#word(WRITE_RESULT_FROM_WIRE, value, field, 'a WriteResult') ?? 'unknown';
  }

  /** Whether it happened. */
  settled(value: lease.SettledOutcome, field: string): boolean {
    return this.#word(SETTLED_FROM_WIRE, value, field, 'a SettledOutcome') ?? false;
  }

  /** Null when absent. What is finer than a microsecond is cut off, so that nothing lasts longer than asked for. */
  duration(value: Duration | undefined, field: string): Micros | null {
    if (value === undefined) return null;
    const { seconds, nanos } = value;
    const wellFormed =
      seconds >= -MAX_DURATION_SECONDS &&
      seconds <= MAX_DURATION_SECONDS &&
      Math.abs(nanos) <= MAX_NANOS &&
      !(seconds > 0n && nanos < 0) &&
      !(seconds < 0n && nanos > 0);
    if (!wellFormed) {
      this.wrong(field, 'is no valid google.protobuf.Duration');
      return null;
    }
    return this.#micros(seconds, Math.trunc(nanos / NANOS_PER_MICRO), field, 'lasts longer than 285 years');
  }

  /** Null, and a violation, when absent. What is finer than a microsecond is cut off. */
  timestamp(value: Timestamp | undefined, field: string): Micros | null {
    if (value === undefined) {
      this.wrong(field, 'is required');
      return null;
    }
    const { seconds, nanos } = value;
    if (seconds < MIN_TIMESTAMP_SECONDS || seconds > MAX_TIMESTAMP_SECONDS || nanos < 0 || nanos > MAX_NANOS) {
      this.wrong(field, 'is no valid google.protobuf.Timestamp');
      return null;
    }
    return this.#micros(seconds, Math.floor(nanos / NANOS_PER_MICRO), field, 'is beyond the year 2255');
  }

  /** A revision or a version. */
  count(value: bigint, field: string): number {
    if (value <= MAX_SAFE) return Number(value);
    this.wrong(field, `must be at most ${MAX_SAFE}`);
    return 0;
  }

  page(value: types.PageRequest | undefined, field: string): Page {
    const size = value?.pageSize ?? 0;
    if (size > MAX_PAGE_SIZE)
      this.wrong(`${field}.page_size`, `must be 1 to ${MAX_PAGE_SIZE}, or 0 for ${DEFAULT_PAGE_SIZE}`);
    return { size: size === 0 ? DEFAULT_PAGE_SIZE : size, token: value?.pageToken ?? '' };
  }

  #micros(seconds: bigint, micros: number, field: string, tooFar: string): Micros | null {
    const total = Number(seconds) * MICROS_PER_SECOND + micros;
    if (Number.isSafeInteger(total)) return total;
    this.wrong(field, tooFar);
    return null;
  }

  #words<T>(table: ReadonlyMap<number, T>, values: readonly number[], field: string, expected: string): T[] {
    return values.flatMap((value, index) => this.#word(table, value, `${field}[${index}]`, expected) ?? []);
  }

  #word<T>(table: ReadonlyMap<number, T>, value: number, field: string, expected: string): T | undefined {
    const word = table.get(value);
    if (word === undefined) this.#wrongWord(value, field, expected);
    return word;
  }

  #wrongWord(value: number, field: string, expected: string): void {
    this.wrong(field, value === 0 ? `is required: ${expected}` : `${value} is not ${expected}`);
  }
}
