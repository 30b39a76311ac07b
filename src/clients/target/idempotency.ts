import { randomUUID } from 'node:crypto';
import { type FingerprintedRequest, fingerprintOf, readIdempotencyKey } from './idempotency-key.js';
import {
  type Claim,
  decideOnKey,
  inFlight,
  type KeptAnswer,
  type KeyRecord,
  type KeyScope,
} from './idempotency-record.js';
import { type Answer, ProblemError, problemAnswer } from './problem-error.js';
import { problemOf } from './problem-of.js';

/**
 * Idempotency keys (W2): a request that is sent again gets the first answer, and is not done again. A key suppresses
 * duplicates; it does not settle disagreement between two writers, which is what conditional writes are for (W1). The two
 * know nothing of each other.
 *
 * **A key's life.** A request claims its key for the time of a lease, works, and leaves its answer in the same step as
 * its change where the store can do that. Who comes meanwhile is told that it is in flight. When the lease is over and
 * there is no answer, the process that worked is dead or stuck: then the request is not done again unless the store can
 * prove that nothing was done; else the key's outcome is *unknown* until a person settles it (E3).
 *
 * **Which answers are kept.** Results: success, and refusals that would be the same again, such as a version conflict. Not
 * those that say "not now" or "not you" (401, 403, 409, 429, …): they free the key. Refusals change nothing: an answer of
 * 400 or more rolls back what the handler did in its transaction.
 */
export interface IdempotencyOptions {
  /** How long an answer is kept, from when it is there. Not less than `inDoubtMs`. */
  readonly retentionMs: number;
  /**
   * The longest time for which a caller may not know whether its request was done, and so may send it again: its
   * retries, its restarts, a person who looks into it.
   */
  readonly inDoubtMs: number;
  /** How long a request may take before it counts as stuck. Default 60,000; not more than `inDoubtMs`. */
  readonly leaseMs?: number;
  /** Bound of a kept answer's body, in bytes; default 65,536. A larger one is answered once and not kept. */
  readonly maxAnswerBytes?: number;
  /** Headers that are kept with an answer, in lower case; others are for the first answer only. */
  readonly keptHeaders?: readonly string[];
}

/** The options with their defaults. */
export type KeyTimes = Required<IdempotencyOptions>;

const DEFAULT_HEADERS = ['content-type', 'content-language', 'content-location', 'etag', 'last-modified', 'location'];

/** Checks options and fills in defaults; throws RangeError. */
export function keyTimes(options: IdempotencyOptions): KeyTimes {
  const { retentionMs, inDoubtMs, leaseMs = Math.min(60_000, inDoubtMs) } = options;
  for (const [name, value] of Object.entries({ retentionMs, inDoubtMs, leaseMs })) {
    if (!Number.isSafeInteger(value) || value <= 0)
      throw new RangeError(`${name} must be a whole number of milliseconds`);
  }
  if (retentionMs < inDoubtMs)
    throw new RangeError('retentionMs must not be less than inDoubtMs: a retry after it would be done twice (W2)');
  if (leaseMs > inDoubtMs) throw new RangeError('leaseMs must not be more than inDoubtMs');
  return {
    retentionMs,
    inDoubtMs,
    leaseMs,
    maxAnswerBytes: options.maxAnswerBytes ?? 65_536,
    keptHeaders: options.keptHeaders ?? DEFAULT_HEADERS,
  };
}

/** Where keys are kept. `Context` is what the work is given: in Postgres the connection of the transaction. */
export interface IdempotencyStore<Context> {
  /** Its options, with the defaults filled in. */
  readonly times: KeyTimes;
  /** Takes the key, or says what is under it; one step. */
  claim(claim: Claim): Promise<'claimed' | KeyRecord>;
  /** The lease of that attempt is over. Takes its place if provably nothing was done; else says what is under the key. */
  lapse(claim: Claim, attempt: string): Promise<'claimed' | KeyRecord>;
  /**
   * Works, and keeps the answer if it is a result, else frees the key. Throws LostClaimError, without having worked, when
   * the claim is not this attempt's any more.
   */
  perform(claim: Claim, work: (context: Context) => Promise<Answer>): Promise<Answer>;
  /** The work failed: frees the key if provably nothing was done, else says that the outcome is unknown. */
  abandon(claim: Claim): Promise<void>;
  /** A person has found out how an unknown outcome ended. False: the key's outcome is not unknown. */
  settle(scope: KeyScope, outcome: Settlement): Promise<boolean>;
}

/** How an effect with an unknown outcome ended, as a person has found out. */
export type Settlement =
  /** It was done; retries get this answer. */
  | { readonly happened: true; readonly answer: Answer }
  /** It was not; the key is free. */
  | { readonly happened: false };

/** Another attempt has taken the key's place. */
export class LostClaimError extends Error {
  override readonly name = 'LostClaimError';
}

/** A request that may be sent again by the same key. */
export interface IdempotentRequest extends FingerprintedRequest {
  /** The caller as the target authenticated it; never from a header. */
  readonly principal: string;
  /** Of the route table: `POST /releases/{env}/promote`. */
  readonly route: string;
  /** The `Idempotency-Key` header. */
  readonly idempotencyKey: string | undefined;
}

const REPLAYED_HEADER = 'idempotency-replayed';

/**
 * Does a request once, and answers every repetition of it with the first answer, marked `idempotency-replayed: true`.
 * Refusals are answers too (problem details); what it throws is what the work threw.
 *
 * @example
 * const keys = postgresIdempotency(pool, { retentionMs: 86_400_000, inDoubtMs: 3_600_000, effects: 'in_transaction' });
 * const answer = await answerOnce(keys, request, async (client) => {
 *   const { rows } = await client.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', [item]);
 *   return jsonAnswer(201, { id: rows[0].id });
 * });
 */
export async function answerOnce<Context>(
  store: IdempotencyStore<Context>,
  request: IdempotentRequest,
  work: (context: Context) => Promise<Answer>,
): Promise<Answer> {
  try {
    const claim = claimOf(request);
    let found = await store.claim(claim);
    if (found !== 'claimed') {
      const decision = decideOnKey(found, claim.fingerprint);
      if (decision.kind === 'answer') return replayed(decision.answer);
      if (decision.kind === 'refuse') throw decision.error;
      found = await store.lapse(claim, decision.attempt);
    }
    if (found !== 'claimed') return afterLapse(found, claim);
    return await perform(store, claim, work);
  } catch (error) {
    if (error instanceof ProblemError) return problemAnswer(error.problem);
    throw error;
  }
}

function claimOf(request: IdempotentRequest): Claim {
  const { principal = '', route, idempotencyKey } = request;
  // Services are written without types too, and all who are nobody, or a promise of somebody, would be one caller.
  if (typeof principal !== 'string') throw new TypeError('the principal of idempotency keys must be a text');
  if (principal === '')
    throw new ProblemError({
      status: 401,
      code: 'unauthenticated',
      detail: 'Keys belong to a caller, and this service knows none for the request.',
      next: 'Present the lease or credential of your run, or say who you are as this service demands.',
    });
  const key = readIdempotencyKey(idempotencyKey);
  return { principal, route, key, fingerprint: fingerprintOf(request), attempt: randomUUID() };
}

/** Somebody else was faster, or is still at it in spite of the lease. */
function afterLapse(found: KeyRecord, { fingerprint }: Claim): Answer {
  const decision = decideOnKey(found, fingerprint);
  if (decision.kind === 'answer') return replayed(decision.answer);
  throw decision.kind === 'refuse' ? decision.error : inFlight(0);
}

async function perform<Context>(
  store: IdempotencyStore<Context>,
  claim: Claim,
  work: (context: Context) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await store.perform(claim, (context) => outcomeOf(() => work(context)));
  } catch (error) {
    if (error instanceof LostClaimError) throw inFlight(0);
    // Should this fail too, the lease runs out and the outcome counts as unknown then.
    await store.abandon(claim).catch(() => undefined);
    if (error instanceof FailedAnswer) return error.answer;
    throw error;
  }
}

/** A handler that answers with an error of its own has failed like one that throws: what it did is rolled back. */
class FailedAnswer extends Error {
  constructor(readonly answer: Answer) {
    super(`the handler answered with status ${answer.status}`);
  }
}

/** The answer of the work; a problem that it throws, or a guard's refusal, is one, and says that nothing was done. */
async function outcomeOf(work: () => Promise<Answer>): Promise<Answer> {
  let answer: Answer;
  try {
    answer = await work();
  } catch (error) {
    const refusal = problemOf(error);
    if (refusal === undefined) throw error;
    return problemAnswer(refusal);
  }
  if (answer.status >= 500) throw new FailedAnswer(answer);
  return answer;
}

function replayed({ status, headers, body }: KeptAnswer): Answer {
  return { status, headers: { ...headers, [REPLAYED_HEADER]: 'true' }, body };
}

/** What is kept of an answer. */
export function keptOf(answer: Answer, { keptHeaders, maxAnswerBytes }: KeyTimes): KeptAnswer {
  const complete = answer.body.byteLength <= maxAnswerBytes;
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => keptHeaders.includes(name)));
  return { status: answer.status, headers, body: complete ? answer.body : new Uint8Array(), complete };
}

/** An answer of JSON. */
export function jsonAnswer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: new TextEncoder().encode(JSON.stringify(body)),
  };
}
