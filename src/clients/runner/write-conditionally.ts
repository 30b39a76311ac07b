import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { changeRule } from '../../route-table/index.js';
import { backoffMs } from '../common/backoff.js';
import { readProblem, type TargetProblem } from './target-problem.js';

/** What is there now. */
export interface Observed<State> {
  /** As `reread` made it of the answer. */
  readonly state: State;
  /** The version of it, for If-Match. */
  readonly version: string;
}

/** What a decision says, having seen the state. */
export type WriteDecision<Change> =
  | { readonly kind: 'write'; readonly change: Change }
  /** The wanted result is there, or is not wanted any more. */
  | { readonly kind: 'unneeded'; readonly why: string }
  /** It must not be written, or a person must choose. */
  | { readonly kind: 'stop'; readonly why: string };

/** What came of the attempt before; undefined at the first one. */
export type Earlier =
  /** The target refused it, and nothing was written. */
  | { readonly kind: 'refused'; readonly problem: TargetProblem }
  /** No answer came: it may have been written, and the state just read says whether it was. */
  | { readonly kind: 'unknown'; readonly error: Error };

/** What one request carries; the same for nothing else. */
export interface Attempt {
  /** 1 for the first. */
  readonly number: number;
  /** The version that the decision was made on; for the If-Match header. */
  readonly ifMatch: string;
  /** One per decision: another body never goes by an earlier key (W2). */
  readonly idempotencyKey: string;
  /** The same for all attempts at one change, to find them together. */
  readonly requestId: string;
}

/** How one change is made under a condition: how to read, decide and send, and whom to ask. */
export interface ConditionalWrite<State, Change> {
  /** Reads the state and its version, from the target and not from memory. */
  readonly reread: (signal: AbortSignal | undefined) => Promise<Observed<State>>;
  /** Decides, from what was just read, what to write. It is asked anew for every attempt (W1a). */
  readonly decide: (
    observed: Observed<State>,
    earlier: Earlier | undefined,
  ) => WriteDecision<Change> | Promise<WriteDecision<Change>>;
  /** Sends the change, under `If-Match: attempt.ifMatch`. Throws when no answer came. */
  readonly send: (change: Change, attempt: Attempt) => Promise<Response>;
  /** A shared pointer moved: shows both candidates to who chooses. Default: the result says that it is to be done. */
  readonly showBoth?: (candidates: Candidates<State, Change>) => void | Promise<void>;
  /** A person must settle it. Default: the result says that it is to be done. */
  readonly ask?: (question: Question<State>) => void | Promise<void>;
  /** 1 to 10, default 3. */
  readonly maxAttempts?: number;
  /** Ends the pauses, and no further attempt is made; rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** Two candidates for one place: this run's, and the one that is there. */
export interface Candidates<State, Change> {
  readonly mine: Change;
  readonly theirs: Observed<State>;
  readonly problem: TargetProblem;
  /** Who chooses. */
  readonly resolver: string;
}

/** A conflict that a person must settle. */
export interface Question<State> {
  readonly problem: TargetProblem;
  /** What is there, where it could be read. */
  readonly observed: Observed<State> | undefined;
  /** Who decides; empty: nobody is named. */
  readonly resolver: string;
}

/** How the write ended; `attempts` says how many requests were sent. */
export type ConditionalWriteResult<State, Change> =
  | { readonly outcome: 'written'; readonly response: Response; readonly attempts: number }
  | { readonly outcome: 'unneeded'; readonly why: string; readonly attempts: number }
  | { readonly outcome: 'stopped'; readonly why: string; readonly attempts: number }
  /** Both candidates are to be shown to the resolver, and were if there is a handler. */
  | ({ readonly outcome: 'show_both'; readonly attempts: number } & Candidates<State, Change>)
  /** A person is to be asked, and was if there is a handler. */
  | ({ readonly outcome: 'ask'; readonly attempts: number } & Question<State>)
  /** The run is not allowed to, or not any more: trying again changes nothing. */
  | { readonly outcome: 'refused'; readonly problem: TargetProblem; readonly attempts: number }
  /** All attempts met somebody else's change, or no answer; `last` says which. */
  | { readonly outcome: 'gave_up'; readonly last: Earlier; readonly attempts: number };

/** What a refusal asks for. */
type Resolution = 'decide_anew' | 'show_both' | 'ask' | 'refused';

const DEFAULT_ATTEMPTS = 3;
const MAX_ATTEMPTS = 10;
const REST = { firstMs: 100, mostMs: 5_000 };
/** A target that asks for more patience than this gets the run's answer now. */
const MAX_REST_MS = 60_000;

/**
 * What a target's refusal asks for, by the class of the write path (W4):
 * a version conflict on an `independent` or `derived` path is read and decided anew, on a `shared_pointer` both candidates
 * are shown, and on every other one, also one without a class, a person is asked (on a `shared_document` not where the
 * target says that the run's lease names it: `retryable`). What was not decided (429, 503, an
 * idempotent request still in flight) is read and decided anew. All else is a refusal.
 *
 * @example
 * const problem = await readProblem(response);
 * if (problem !== undefined && resolutionOf(problem) === 'ask') await tell(problem.resolver);
 */
export function resolutionOf({ status, code, conflict_category: category, retryable }: TargetProblem): Resolution {
  if (status === 412 && code === 'version_conflict') {
    const rule = category === undefined ? undefined : changeRule(category);
    if (rule?.onConflict === 'stop_show_both') return 'show_both';
    // Whoever holds a document by name settles conflicts about it; and of each conflict the target says whether it may be.
    const mayDecide = rule?.retryable === true || rule?.onConflict === 'stop_unless_leased';
    return mayDecide && retryable ? 'decide_anew' : 'ask';
  }
  // An effect that may have happened is settled by a person before anything else is sent for it (E3).
  if (status === 409 && code === 'outcome_unknown') return 'ask';
  if (status === 429 || status === 503) return 'decide_anew';
  return status === 409 && code === 'idempotency_in_flight' ? 'decide_anew' : 'refused';
}

/**
 * Makes one change under the condition that nobody else changed the thing meanwhile (W1), and resolves what comes of it.
 * Every attempt begins with a fresh read and a new decision; an old body is never sent again, and no attempt is made that
 * the class of the path does not allow.
 *
 * @example
 * const result = await writeConditionally<Policy, Policy>({
 *   reread: async () => {
 *     const response = await lease.fetch(url);
 *     return { state: (await response.json()) as Policy, version: response.headers.get('etag') ?? '' };
 *   },
 *   decide: ({ state }) =>
 *     state.destinations.includes('ops@example.com')
 *       ? { kind: 'unneeded', why: 'it is there already' }
 *       : { kind: 'write', change: { ...state, destinations: [...state.destinations, 'ops@example.com'] } },
 *   send: (change, { ifMatch, idempotencyKey, requestId }) =>
 *     lease.fetch(url, {
 *       method: 'PUT',
 *       body: JSON.stringify(change),
 *       writes: ['notification-policy/41'],
 *       requestId,
 *       headers: { 'if-match': ifMatch, 'idempotency-key': idempotencyKey, 'content-type': 'application/json' },
 *     }),
 * });
 * if (result.outcome === 'show_both') await tellReleaseOwner(result.mine, result.theirs);
 */
export async function writeConditionally<State, Change>(
  write: ConditionalWrite<State, Change>,
): Promise<ConditionalWriteResult<State, Change>> {
  const { signal, maxAttempts = DEFAULT_ATTEMPTS } = write;
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS)
    throw new RangeError(`maxAttempts must be 1 to ${MAX_ATTEMPTS}, not ${maxAttempts}`);
  const requestId = randomUUID();
  let earlier: Earlier | undefined;
  for (let number = 1; ; number += 1) {
    signal?.throwIfAborted();
    const observed = await write.reread(signal);
    const decision = await write.decide(observed, earlier);
    if (decision.kind === 'unneeded') return { outcome: 'unneeded', why: decision.why, attempts: number - 1 };
    if (decision.kind === 'stop') return { outcome: 'stopped', why: decision.why, attempts: number - 1 };
    const attempt = { number, ifMatch: observed.version, idempotencyKey: randomUUID(), requestId };
    const sent = await send(write, decision.change, attempt);
    if (sent.kind === 'written') return { outcome: 'written', response: sent.response, attempts: number };
    if (sent.kind === 'refused') {
      const resolved = await resolve(write, decision.change, sent.problem, number);
      if (resolved !== undefined) return resolved;
    }
    earlier = sent;
    const restMs = Math.max(sent.kind === 'refused' ? (sent.problem.retryAfterMs ?? 0) : 0, backoffMs(number, REST));
    if (number >= maxAttempts || restMs > MAX_REST_MS) return { outcome: 'gave_up', last: earlier, attempts: number };
    await pause(restMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  }
}

async function send<State, Change>(
  write: ConditionalWrite<State, Change>,
  change: Change,
  attempt: Attempt,
): Promise<Earlier | { readonly kind: 'written'; readonly response: Response }> {
  let response: Response;
  try {
    response = await write.send(change, attempt);
  } catch (error) {
    // Given up, or nothing may be written any more: that is for the caller. Only a lost answer is read about.
    if (write.signal?.aborted === true || !isLostAnswer(error)) throw error;
    return { kind: 'unknown', error };
  }
  // A gateway's 502, or a target that failed half-way: whether it was written is not known.
  if (response.status >= 500 && response.status !== 503)
    return { kind: 'unknown', error: new Error(`the target answered ${response.status}`) };
  const problem = await readProblem(response);
  return problem === undefined ? { kind: 'written', response } : { kind: 'refused', problem };
}

/** What a refusal comes to; undefined: read and decide anew. */
async function resolve<State, Change>(
  write: ConditionalWrite<State, Change>,
  mine: Change,
  problem: TargetProblem,
  attempts: number,
): Promise<ConditionalWriteResult<State, Change> | undefined> {
  const resolution = resolutionOf(problem);
  if (resolution === 'decide_anew') return undefined;
  if (resolution === 'refused') return { outcome: 'refused', problem, attempts };
  const category = problem.conflict_category;
  const resolver = problem.resolver ?? (category === undefined ? '' : changeRule(category).resolver);
  const observed = await write.reread(write.signal).catch(() => undefined);
  // Where nothing is to be read there is one candidate only, and a person is asked.
  if (resolution === 'show_both' && observed !== undefined) {
    const candidates = { mine, theirs: observed, problem, resolver };
    await write.showBoth?.(candidates);
    return { outcome: 'show_both', attempts, ...candidates };
  }
  const question = { problem, observed, resolver };
  await write.ask?.(question);
  return { outcome: 'ask', attempts, ...question };
}

/** `fetch` rejects with a TypeError, which has a cause, when a connection fails; and with TimeoutError when it took too long. */
function isLostAnswer(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return (error instanceof TypeError && error.cause !== undefined) || error.name === 'TimeoutError';
}
