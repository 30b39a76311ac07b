import { CheckFenceRequest, type CheckFenceResponse, FenceReason } from '../../gen/writ/v1/fence_service.js';
import type { CallOptions } from '../common/channel.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { durationMs, timestampMicros } from '../common/time.js';
import { askFence } from './check-stream.js';

/** What a run presents with a request, and which writes the request would make. */
export interface FenceQuestion {
  /** Absent when a credential is given. */
  readonly leaseId?: string;
  /** The credential that the run presented in place of its lease id, without `Bearer`. */
  readonly credential?: string;
  /** The key that the presenter proved to have, base64url; a bound credential is refused without it. */
  readonly presenter?: { readonly x5tS256: string } | { readonly jkt: string };
  /** The run as the target authenticated it; never from a header that anybody can set. Absent: it was not authenticated. */
  readonly presenterRunId?: string;
  /** All writes of the request together. */
  readonly writes: readonly {
    readonly resource: string;
    readonly action: string;
    /** Absent with a credential, which brings it. */
    readonly token?: bigint;
    /** Optimistic actions are refused without it. */
    readonly observedVersion?: string;
  }[];
  /**
   * Correlates the check with the target's own log. Tracked actions need it, unique for each attempt: the caller's
   * `x-request-id`, which may be sent again meanwhile, belongs into the options of the call (R4).
   */
  readonly requestId?: string;
  /** Default: the client's. */
  readonly namespace?: string;
}

/** The reason in lower case, as in the contract (`ok`, `stale_token`, …), or why there is no verdict. */
export type DecisionReason = string;

/** What the check says of one write. */
export interface WriteDecision {
  readonly allowed: boolean;
  readonly reason: DecisionReason;
  /** For people and logs; never says a current token. */
  readonly message: string;
  /** The kind is in `observe` mode: `reason` is what `enforce` would have answered. */
  readonly observedOnly: boolean;
  /** For the guard: the newest token that the lease has for the resource; undefined unless the reason is `ok`. */
  readonly token: bigint | undefined;
  /** For the guard: a leased write, which raises its mark. False: an optimistic one, or none. */
  readonly exclusive: boolean;
  /** The run asked for this very resource by name, and holds it alone (W4). */
  readonly explicit: boolean;
  /** Not empty: the action is tracked, and `reportWrite` must say what became of the write. */
  readonly admissionId: string;
}

/** Who holds what was allowed; what the guard keeps beside its mark (C1b). */
export interface FenceHolder {
  readonly runId: string;
  readonly leaseId: string;
  /** On the coordinator's database clock, unless it is renewed or ends early. */
  readonly expiresAt: Date | undefined;
}

/** The answer to a check. Without a verdict (`error`) nothing is allowed (P8). */
export interface FenceDecision {
  /** True only if every write is allowed. */
  readonly allowed: boolean;
  /** Of the first write that is not allowed; `ok` when all are. */
  readonly reason: DecisionReason;
  /** For people and logs, of the first write that is not allowed; never says a current token. */
  readonly message: string;
  /** One per write. */
  readonly writes: readonly WriteDecision[];
  /** The log revision it was decided at; undefined without a verdict. */
  readonly logRevision: bigint | undefined;
  /** `performance.now()` until which the lease lives unless it ends early: for the target's own deadline, never instead of a check. */
  readonly validUntil: number | undefined;
  /** Undefined unless allowed by a live lease. */
  readonly holder: FenceHolder | undefined;
  /** Why there is no verdict: the coordinator could not be asked. Retrying later can help. */
  readonly error: WritError | undefined;
}

const TIMEOUT_MS = 2_000;

/**
 * Asks the coordinator whether writes may be accepted (C10). It never throws for want of an answer: what cannot be
 * decided is denied (P8), with the reason `coordinator_unreachable` or `check_failed`. Tell those two from a verdict: to
 * a client the first is 503, a verdict is 403 or 409.
 *
 * @example
 * const decision = await checkFence(writ, { leaseId, presenterRunId, writes: [{ resource: 'release/prod-eu', action: 'promote', token }] });
 * if (!decision.allowed) return c.json({ reason: decision.reason, detail: decision.message }, decision.error ? 503 : 403);
 */
export async function checkFence(
  client: WritClient,
  question: FenceQuestion,
  options: CallOptions = {},
): Promise<FenceDecision> {
  const sentAt = performance.now();
  try {
    const answer = await askFence(
      client,
      CheckFenceRequest.fromPartial({
        namespace: question.namespace ?? '',
        leaseId: question.leaseId ?? '',
        credential: question.credential ?? '',
        ...(question.presenter === undefined ? {} : { presenter: { key: keyOf(question.presenter) } }),
        presenterRunId: question.presenterRunId ?? '',
        writes: question.writes.map(({ token = 0n, ...write }) => ({ ...write, fencingToken: token })),
        requestId: question.requestId ?? '',
      }),
      {
        timeoutMs: TIMEOUT_MS,
        ...(question.requestId === undefined ? {} : { requestId: question.requestId }),
        ...options,
      },
    );
    return decision(answer, question.writes.length, sentAt);
  } catch (error) {
    return denied(question.writes.length, WritError.from(error, question.requestId ?? '', ''));
  }
}

function keyOf(presenter: NonNullable<FenceQuestion['presenter']>) {
  return 'jkt' in presenter
    ? { $case: 'jkt' as const, value: presenter.jkt }
    : { $case: 'x5tS256' as const, value: presenter.x5tS256 };
}

function decision(answer: CheckFenceResponse, asked: number, sentAt: number): FenceDecision {
  const writes = answer.results.map((result) => ({
    allowed: result.allowed,
    reason: (FenceReason[result.reason] ?? 'FENCE_REASON_UNSPECIFIED').replace('FENCE_REASON_', '').toLowerCase(),
    message: result.message,
    observedOnly: result.observedOnly,
    token: result.fencingToken > 0n ? result.fencingToken : undefined,
    exclusive: result.exclusive,
    explicit: result.explicit,
    admissionId: result.admissionId,
  }));
  const consistent = writes.length === asked && answer.allowed === writes.every((write) => write.allowed);
  // Nothing to check is nothing allowed; an answer that does not fit the question is no answer.
  if (!consistent || asked === 0)
    return denied(asked, new WritError('INTERNAL', 'the verdict does not fit the question'));
  const first = writes.find((write) => !write.allowed) ?? writes[0];
  const validForMs = durationMs(answer.validFor);
  return {
    allowed: answer.allowed,
    reason: answer.allowed ? 'ok' : (first?.reason ?? 'unspecified'),
    message: first?.message ?? '',
    writes,
    logRevision: answer.logRevision,
    validUntil: validForMs === undefined ? undefined : sentAt + validForMs,
    holder: answer.runId === '' ? undefined : holderOf(answer),
    error: undefined,
  };
}

function holderOf({ runId, leaseId, expiresAt }: CheckFenceResponse): FenceHolder {
  const micros = timestampMicros(expiresAt);
  return { runId, leaseId, expiresAt: micros === undefined ? undefined : new Date(micros / 1_000) };
}

function denied(asked: number, error: WritError): FenceDecision {
  const reason = error.retryable || error.code === 'DEADLINE_EXCEEDED' ? 'coordinator_unreachable' : 'check_failed';
  const why = reason === 'check_failed' ? 'the coordinator did not decide' : 'the coordinator could not be asked';
  const message = `${why}, so the write is refused: ${error.message}`;
  const write: WriteDecision = {
    allowed: false,
    reason,
    message,
    observedOnly: false,
    token: undefined,
    exclusive: false,
    explicit: false,
    admissionId: '',
  };
  return {
    allowed: false,
    reason,
    message,
    writes: Array.from({ length: asked }, () => write),
    logRevision: undefined,
    validUntil: undefined,
    holder: undefined,
    error,
  };
}
