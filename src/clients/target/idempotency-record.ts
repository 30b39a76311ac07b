import { type Answer, ProblemError } from './problem-error.js';

/** Whose key it is: keys of different callers, or on different routes, have nothing to do with each other. */
export interface KeyScope {
  /** The caller as the target authenticated it. */
  readonly principal: string;
  /** Of the route table: `POST /releases/{env}/promote`. */
  readonly route: string;
  /** The `Idempotency-Key` header. */
  readonly key: string;
}

/** One request's hold on a key. */
export interface Claim extends KeyScope {
  readonly fingerprint: string;
  /** Random; tells this attempt from one that took its place. */
  readonly attempt: string;
}

/** An answer as it is kept. */
export interface KeptAnswer extends Answer {
  /** False: the body was too large to be kept. */
  readonly complete: boolean;
}

/** What a store has under a key. */
export type KeyRecord =
  /** Somebody is at it. */
  | {
      readonly state: 'in_flight';
      readonly fingerprint: string;
      readonly attempt: string;
      readonly leaseLeftMs: number;
    }
  /** Done; this was the answer. */
  | { readonly state: 'finished'; readonly fingerprint: string; readonly answer: KeptAnswer }
  /** Somebody was at it, and did not say how it ended. */
  | { readonly state: 'unknown'; readonly fingerprint: string };

/** What to do with a request whose key is there. */
export type KeyDecision =
  | { readonly kind: 'answer'; readonly answer: KeptAnswer }
  | { readonly kind: 'refuse'; readonly error: ProblemError }
  /** The lease of who was at it is over: find out what became of it. */
  | { readonly kind: 'lapsed'; readonly attempt: string };

/** Says at most this many seconds to wait: most requests are done long before their lease is over. */
const MAX_RETRY_AFTER = 5;

/** Pure: what a key's record means for a request with this fingerprint. */
export function decideOnKey(record: KeyRecord, fingerprint: string): KeyDecision {
  if (record.fingerprint !== fingerprint) return { kind: 'refuse', error: reused() };
  switch (record.state) {
    case 'finished':
      return record.answer.complete
        ? { kind: 'answer', answer: record.answer }
        : { kind: 'refuse', error: notKept(record.answer) };
    case 'unknown':
      return { kind: 'refuse', error: outcomeUnknown() };
    case 'in_flight':
      return record.leaseLeftMs > 0
        ? { kind: 'refuse', error: inFlight(record.leaseLeftMs) }
        : { kind: 'lapsed', attempt: record.attempt };
  }
}

/** Statuses that say "not now" or "not you" rather than what became of the request: the key stays free for another try. */
const NOT_A_RESULT: ReadonlySet<number> = new Set([401, 403, 408, 409, 413, 421, 425, 428, 429]);

/** Whether an answer is the result of the request, which a retry gets again. */
export function isResult(status: number): boolean {
  return status < 500 && !NOT_A_RESULT.has(status);
}

function reused(): ProblemError {
  return new ProblemError({
    status: 422,
    code: 'idempotency_key_reused',
    detail:
      'This Idempotency-Key was used for another request: method, path, precondition or body differ. Nothing was done.',
    next: 'A retry repeats the request exactly. For a new intent make a new key.',
  });
}

export function inFlight(leaseLeftMs: number): ProblemError {
  return new ProblemError({
    status: 409,
    code: 'idempotency_in_flight',
    detail: 'A request with this Idempotency-Key is being worked on.',
    retryable: true,
    retry_after: Math.min(MAX_RETRY_AFTER, Math.max(1, Math.ceil(leaseLeftMs / 1_000))),
    next: 'Send the same request with the same key again after the time in Retry-After.',
  });
}

/** E3: a visible stuck item beats an invisible duplicate. */
function outcomeUnknown(): ProblemError {
  return new ProblemError({
    status: 409,
    code: 'outcome_unknown',
    detail:
      'A request with this Idempotency-Key was begun, and nobody knows how it ended. It is not done again, as it may have been done.',
    resolver: 'operator',
    next: 'Do not send it with another key. Look whether its effect is there, and let an operator settle the key.',
  });
}

function notKept({ status, headers }: KeptAnswer): ProblemError {
  return new ProblemError({
    status: 409,
    code: 'answer_not_kept',
    detail: `The request was done, with status ${status}; its answer was too large to be kept. It is not done again.`,
    first_status: status,
    location: headers.location,
    etag: headers.etag,
    next: 'Read the resource to see what was done.',
  });
}
