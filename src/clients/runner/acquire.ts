import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { WaitingPlace } from '../../gen/writ/v1/lease_service.js';
import { EndReason, type Lease as LeaseRecord, LeaseState } from '../../gen/writ/v1/types.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import type { Settled } from '../common/lease-session.js';
import { durationMs, toDuration } from '../common/time.js';
import { elapsedMs } from './clock.js';
import { LeaseLostError, RefusedError } from './errors.js';
import { Lease, type LeaseWatch } from './lease.js';
import { type AcquireRefusal, toAcquireRefusal } from './refusals.js';
import { type Acquired, sessionOf } from './session.js';
import { type Target, Targets } from './targets.js';
import { type RequestedResource, wireEntries } from './write-set.js';

/** What to ask for: `resources`, or a `task`, or a `resourceSet` of the conflict map. */
export interface AcquireRequest extends LeaseWatch {
  /** The run that asks; of the principal that the client calls as. */
  readonly runId: string;
  /** 1 to 256 (WRIT_MAX_ENTRIES). */
  readonly resources?: readonly RequestedResource[];
  /** A task of the conflict map, with the value of each of its parameters. */
  readonly task?: { readonly name: string; readonly parameters?: Readonly<Record<string, string>> };
  /** A named set of resources of the conflict map; it may have a start, which is waited for like a holder. */
  readonly resourceSet?: string;
  /**
   * A lease of the parent run, of which this is to be a part: at or below what it covers, and no more. The parent's entries
   * there are suspended meanwhile, and come back with new tokens.
   */
  readonly delegatedFrom?: string;
  /** Default: the conflict map's. */
  readonly ttlMs?: number;
  /** How long to wait for what others hold. Default: not at all. */
  readonly waitMs?: number;
  /** The same key resumes the same place, or returns the same lease, also after a restart of the worker. Default: a new one. */
  readonly idempotencyKey?: string;
  /** For people who look at the lease; at most 1,024 bytes, no secrets. Part of the request that the key is compared by. */
  readonly purpose?: string;
  /** Finds the attempt in the log (`writ why`). */
  readonly requestId?: string;
  /** Services that the run writes to: where `lease.fetch` may go, and what it presents there. */
  readonly targets?: readonly Target[];
  /** W3C trace context for requests to them that bring none. Default: that of OpenTelemetry, where it is set up. */
  readonly traceparent?: string;
  /** Default: the client's. */
  readonly namespace?: string;
  /** Gives up: a place in the queue is given back, and so is a lease whose answer was on its way. */
  readonly signal?: AbortSignal;
  /** Told where it stands, each time that the coordinator says. */
  readonly onWaiting?: (place: WaitingPlace) => void;
}

/** A coordinator that answers `waiting` at once is not asked in a tight loop. */
const MIN_ROUND_MS = 100;
/**
 * Whoever waits in the queue and loses the coordinator comes back at any moment of this time, since thousands may have lost
 * it at one (F5). Short enough for several tries while the place is kept: 5 s at the least.
 */
const REJOIN_WITHIN_MS = 2_000;
/** Of the time for which a place is kept: that is longer when very many wait, who then come back over more of it... */
const REJOIN_SHARE = 0.1;
/** ...but well within the time in which a grant made meanwhile is to be claimed. */
const MAX_REJOIN_WITHIN_MS = 5_000;
/** Of what is left of a lease: a call that hung in the queue longer says too little about it. */
const STALE_SHARE = 0.1;
const MAX_LOOKS = 3;
/** The coordinator ends a wait; whoever hears nothing of it asks. */
const OVERTIME_MS = 2_000;
const WITHDRAW_TIMEOUT_MS = 3_000;

/**
 * Asks for a write set, all of it or nothing, and waits up to `waitMs` in the coordinator's queue, calling again by the
 * same key for as long as that takes. Throws RefusedError, or WritError when it cannot be decided.
 *
 * @example
 * const lease = await acquire(writ, { runId, resources: [{ resource: 'release/prod-eu', actions: ['promote'] }], waitMs: 60_000 });
 * try {
 *   await promote(image, { fencingToken: lease.token('release/prod-eu'), signal: lease.signal });
 * } finally {
 *   await lease.release();
 * }
 */
export async function acquire(client: WritClient, request: AcquireRequest): Promise<Lease> {
  const asking = toAsking(request, request.idempotencyKey ?? randomUUID());
  try {
    return await callUntilDecided(client, asking);
  } catch (error) {
    if (mayHoldSomething(error)) await withdraw(client, asking);
    throw error;
  }
}

/** Granted or refused: for who would rather branch than catch. */
export type AcquireResult =
  | { readonly granted: true; readonly lease: Lease }
  | { readonly granted: false; readonly refusal: AcquireRefusal };

/**
 * As `acquire`, with a refusal as an answer that says by its `course` what it asks for. Still throws what is no decision:
 * a WritError, or a LeaseLostError for a key whose lease has ended.
 *
 * @example
 * const asked = await tryAcquire(writ, { runId, resources: [{ resource: 'release/prod-eu' }] });
 * if (!asked.granted) return report(asked.refusal.course, asked.refusal.resolution.action);
 */
export async function tryAcquire(client: WritClient, request: AcquireRequest): Promise<AcquireResult> {
  try {
    return { granted: true, lease: await acquire(client, request) };
  } catch (error) {
    if (error instanceof RefusedError) return { granted: false, refusal: toAcquireRefusal(error.refusal) };
    throw error;
  }
}

/**
 * Takes up again what an earlier process of this run got by the key: its lease, with the same tokens, or its place in the
 * queue. The request must be the same. When there is neither yet, it is acquired now.
 *
 * Only for who knows that the earlier process is gone for good: fencing tokens tell leases apart, not two processes that
 * share one. And what that process had sent may have happened: read it again before anything is repeated (R6). When the
 * coordinator is out of reach, nothing is given back: try again, while the lease lives.
 *
 * @example
 * const lease = await resume(writ, { runId, resources, idempotencyKey: `deploy-${buildNumber}`, waitMs: 60_000 });
 */
export async function resume(
  client: WritClient,
  request: AcquireRequest & { readonly idempotencyKey: string },
): Promise<Lease> {
  const asking = toAsking(request, request.idempotencyKey);
  try {
    return await callUntilDecided(client, { ...asking, resumed: true });
  } catch (error) {
    if (request.signal?.aborted === true) await withdraw(client, asking);
    throw error;
  }
}

/** A request that is being made. */
interface Asking {
  readonly request: AcquireRequest;
  readonly idempotencyKey: string;
  readonly targets: Targets;
  readonly resumed: boolean;
}

function toAsking(request: AcquireRequest, idempotencyKey: string): Asking {
  return { request, idempotencyKey, targets: new Targets(request.targets ?? []), resumed: false };
}

async function callUntilDecided(client: WritClient, asking: Asking): Promise<Lease> {
  const { request, idempotencyKey } = asking;
  const { signal, waitMs = 0 } = request;
  const giveUpAt = elapsedMs() + waitMs;
  let looks = 0;
  let rejoinWithinMs = REJOIN_WITHIN_MS;
  for (;;) {
    const sentAt = elapsedMs();
    let acquired: Acquired;
    try {
      acquired = await sessionOf(client).acquire(wireRequest(request, idempotencyKey), {
        once: waitMs > 0,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      // The place is kept for a while, and the same key finds it again.
      if (!(error instanceof WritError && mayAskAgain(error)) || elapsedMs() >= giveUpAt) throw error;
      await rest((error.retryAfterMs ?? 0) + Math.random() * rejoinWithinMs, signal);
      continue;
    }
    const { outcome } = acquired.answer;
    if (outcome?.$case === 'lease') {
      looks += 1;
      if (waitMs > 0 && isStale(outcome.value, sentAt) && looks < MAX_LOOKS) continue;
      return held(client, asking, outcome.value, sentAt);
    }
    if (outcome?.$case === 'refusal') throw new RefusedError(outcome.value);
    if (outcome === undefined) throw new WritError('INTERNAL', 'the answer to an acquire has no outcome');
    request.onWaiting?.(outcome.value);
    const share = (durationMs(outcome.value.callAgainWithin) ?? 0) * REJOIN_SHARE;
    rejoinWithinMs = Math.min(MAX_REJOIN_WITHIN_MS, Math.max(REJOIN_WITHIN_MS, share));
    if (acquired.settled === null) await rest(MIN_ROUND_MS - (elapsedMs() - sentAt), signal);
    else if ((await settledWithin(acquired.settled, giveUpAt - elapsedMs() + OVERTIME_MS, signal)) === 'lost')
      await rest(Math.random() * rejoinWithinMs, signal);
  }
}

/** The session says when there is something to ask for; when it cannot any more, the place is found again by the key. */
async function settledWithin(
  settled: Promise<Settled>,
  withinMs: number,
  signal: AbortSignal | undefined,
): Promise<Settled> {
  const over = new AbortController();
  const stop = (): void => over.abort();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  const timeUp = pause(Math.max(0, withinMs), 'told' as const, { signal: over.signal }).catch(() => 'told' as const);
  const how = await Promise.race([settled, timeUp]);
  over.abort();
  signal?.removeEventListener('abort', stop);
  signal?.throwIfAborted();
  return how;
}

/**
 * What is left counts from when the request was sent, and that may have been long before the grant: counted like that, a
 * lease would be lost that has only just begun. The same key says at once how much is left now.
 */
function isStale({ state, expiresIn }: LeaseRecord, sentAt: number): boolean {
  return state === LeaseState.LEASE_STATE_ACTIVE && elapsedMs() - sentAt > (durationMs(expiresIn) ?? 0) * STALE_SHARE;
}

/** Nobody knows what happened, or nothing did: by the same key it is the same request, however often it is made (P6). */
function mayAskAgain({ retryable, code }: WritError): boolean {
  return retryable || code === 'DEADLINE_EXCEEDED';
}

/** By an old key it may be a lease that has ended since. */
function held(client: WritClient, asking: Asking, record: LeaseRecord, sentAt: number): Lease {
  if (record.state !== LeaseState.LEASE_STATE_ACTIVE) {
    const why = EndReason[record.endReason] ?? '';
    throw new LeaseLostError(
      record.leaseId,
      'ended',
      `it was granted by this key and has ended: ${why.replace('END_REASON_', '').toLowerCase()}`,
    );
  }
  const { request, targets, resumed } = asking;
  return new Lease({
    ...request,
    client,
    namespace: request.namespace ?? client.namespace,
    record,
    sentAt,
    targets,
    resumed,
  });
}

function wireRequest(request: AcquireRequest, idempotencyKey: string) {
  const { task, ttlMs, waitMs } = request;
  return {
    namespace: request.namespace ?? '',
    runId: request.runId,
    entries: wireEntries(request.resources ?? []),
    task: task === undefined ? undefined : { name: task.name, parameters: { ...task.parameters } },
    resourceSet: request.resourceSet ?? '',
    delegatedFrom: request.delegatedFrom ?? '',
    ttl: ttlMs === undefined ? undefined : toDuration(ttlMs, 'ttlMs'),
    wait: waitMs === undefined ? undefined : toDuration(waitMs, 'waitMs'),
    idempotencyKey,
    purpose: request.purpose ?? '',
    requestId: request.requestId ?? '',
  };
}

/** Nothing is held after a refusal, after an answer that nothing could be decided, or when another request owns the key. */
function mayHoldSomething(error: unknown): boolean {
  if (error instanceof RefusedError || error instanceof LeaseLostError) return false;
  if (!(error instanceof WritError)) return true;
  return ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED', 'UNKNOWN', 'INTERNAL'].includes(error.code);
}

/** By the key, which also stops an acquire that is still on its way. */
async function withdraw(client: WritClient, { request, idempotencyKey }: Asking): Promise<void> {
  const lease = { $case: 'acquireKey' as const, value: idempotencyKey };
  await sessionOf(client)
    .release({ namespace: request.namespace ?? '', runId: request.runId, lease }, { timeoutMs: WITHDRAW_TIMEOUT_MS })
    .catch(() => undefined);
}

async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms > 0) await pause(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  signal?.throwIfAborted();
}
