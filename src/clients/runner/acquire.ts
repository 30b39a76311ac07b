import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AcquireWriteSetResponse, WaitingPlace } from '../../gen/writ/v1/lease_service.js';
import { Access, EndReason, type Lease as LeaseRecord, LeaseState, Scope } from '../../gen/writ/v1/types.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { toDuration } from '../common/time.js';
import { elapsedMs } from './clock.js';
import { LeaseLostError, RefusedError } from './errors.js';
import { Lease, type LeaseWatch } from './lease.js';

/** One resource that is asked for. */
export interface RequestedResource {
  readonly resource: string;
  /** Default `write`. */
  readonly access?: 'read' | 'stable_read' | 'write';
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  /** Empty on a write: every write action that the run's contract allows. */
  readonly actions?: readonly string[];
  readonly observedVersion?: string;
}

/** What to ask for: `resources`, or a `task`, or a `resourceSet` of the conflict map. */
export interface AcquireRequest extends LeaseWatch {
  readonly runId: string;
  readonly resources?: readonly RequestedResource[];
  readonly task?: { readonly name: string; readonly parameters?: Readonly<Record<string, string>> };
  readonly resourceSet?: string;
  /** Default: the conflict map's. */
  readonly ttlMs?: number;
  /** How long to wait for what others hold. Default: not at all. */
  readonly waitMs?: number;
  /** The same key resumes the same place, or returns the same lease, also after a restart of the worker. Default: a new one. */
  readonly idempotencyKey?: string;
  readonly purpose?: string;
  /** Finds the attempt in the log (`writ why`). */
  readonly requestId?: string;
  readonly namespace?: string;
  /** Gives up: a place in the queue is given back, and so is a lease whose answer was on its way. */
  readonly signal?: AbortSignal;
  /** Told where it stands, each time that the coordinator says. */
  readonly onWaiting?: (place: WaitingPlace) => void;
}

const ACCESS = {
  read: Access.ACCESS_READ,
  stable_read: Access.ACCESS_STABLE_READ,
  write: Access.ACCESS_WRITE,
} as const;
const SCOPE = { exact: Scope.SCOPE_EXACT, subtree: Scope.SCOPE_SUBTREE } as const;

/** A coordinator that answers `waiting` at once is not asked in a tight loop. */
const MIN_ROUND_MS = 100;
const RETRY_MS = 500;
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
  const idempotencyKey = request.idempotencyKey ?? randomUUID();
  try {
    return await callUntilDecided(client, request, idempotencyKey);
  } catch (error) {
    if (mayHoldSomething(error)) await withdraw(client, request, idempotencyKey);
    throw error;
  }
}

/**
 * Runs `work` with a write set and gives it back on every way out. When the lease is lost meanwhile it throws
 * LeaseLostError, even if `work` ended well: it may have written without authority, and somebody should know.
 *
 * @example
 * await withWriteSet(writ, { runId, resources: [{ resource: 'release/prod-eu' }] }, async (lease, signal) => {
 *   await fetch(url, { method: 'PUT', body, signal, headers: { 'writ-fencing-token': String(lease.token('release/prod-eu')) } });
 * });
 */
export async function withWriteSet<T>(
  client: WritClient,
  request: AcquireRequest,
  work: (lease: Lease, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const lease = await acquire(client, request);
  let result: T;
  try {
    result = await work(lease, lease.signal);
  } finally {
    // Its failure must not hide that of the work; the lease then ends at its expiry.
    await lease.release().catch(() => undefined);
  }
  if (lease.lost !== undefined) throw lease.lost;
  return result;
}

async function callUntilDecided(client: WritClient, request: AcquireRequest, idempotencyKey: string): Promise<Lease> {
  const { signal, waitMs = 0 } = request;
  const giveUpAt = elapsedMs() + waitMs;
  for (;;) {
    const sentAt = elapsedMs();
    let answer: AcquireWriteSetResponse;
    try {
      answer = await client.lease.acquireWriteSet(
        wireRequest(request, idempotencyKey),
        signal === undefined ? {} : { signal },
      );
    } catch (error) {
      // The place is kept for a while, and the same key finds it again.
      if (!(error instanceof WritError && error.retryable) || elapsedMs() >= giveUpAt) throw error;
      await rest(error.retryAfterMs ?? RETRY_MS, signal);
      continue;
    }
    const { outcome } = answer;
    if (outcome?.$case === 'lease') return held(client, request, outcome.value, sentAt);
    if (outcome?.$case === 'refusal') throw new RefusedError(outcome.value);
    if (outcome === undefined) throw new WritError('INTERNAL', 'the answer to an acquire has no outcome');
    request.onWaiting?.(outcome.value);
    await rest(MIN_ROUND_MS - (elapsedMs() - sentAt), signal);
  }
}

/** By an old key it may be a lease that has ended since. */
function held(client: WritClient, request: AcquireRequest, record: LeaseRecord, sentAt: number): Lease {
  if (record.state !== LeaseState.LEASE_STATE_ACTIVE) {
    const why = EndReason[record.endReason] ?? '';
    throw new LeaseLostError(
      record.leaseId,
      'ended',
      `it was granted by this key and has ended: ${why.replace('END_REASON_', '').toLowerCase()}`,
    );
  }
  const { onJeopardy, onSafe, onLost, mayRenew } = request;
  return new Lease({
    client,
    namespace: request.namespace ?? client.namespace,
    record,
    sentAt,
    ttlMs: request.ttlMs,
    ...(onJeopardy === undefined ? {} : { onJeopardy }),
    ...(onSafe === undefined ? {} : { onSafe }),
    ...(onLost === undefined ? {} : { onLost }),
    ...(mayRenew === undefined ? {} : { mayRenew }),
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
    ttl: ttlMs === undefined ? undefined : toDuration(ttlMs),
    wait: waitMs === undefined ? undefined : toDuration(waitMs),
    idempotencyKey,
    purpose: request.purpose ?? '',
    requestId: request.requestId ?? '',
  };
}

/** Resources as the contract words them. */
export function wireEntries(resources: readonly RequestedResource[]) {
  return resources.map((one) => ({
    resource: one.resource,
    access: ACCESS[one.access ?? 'write'],
    scope: SCOPE[one.scope ?? 'exact'],
    actions: [...(one.actions ?? [])],
    observedVersion: one.observedVersion,
  }));
}

/** Nothing is held after a refusal, after an answer that nothing could be decided, or when another request owns the key. */
function mayHoldSomething(error: unknown): boolean {
  if (error instanceof RefusedError || error instanceof LeaseLostError) return false;
  if (!(error instanceof WritError)) return true;
  return ['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'CANCELLED', 'UNKNOWN', 'INTERNAL'].includes(error.code);
}

/** By the key, which also stops an acquire that is still on its way. */
async function withdraw(client: WritClient, request: AcquireRequest, acquireKey: string): Promise<void> {
  const lease = { $case: 'acquireKey' as const, value: acquireKey };
  await client.lease
    .releaseLease(
      { namespace: request.namespace ?? '', runId: request.runId, lease },
      { timeoutMs: WITHDRAW_TIMEOUT_MS },
    )
    .catch(() => undefined);
}

async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms > 0) await pause(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  signal?.throwIfAborted();
}
