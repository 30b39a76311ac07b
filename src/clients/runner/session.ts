import {
  AcquireWriteSetRequest,
  type AcquireWriteSetResponse,
  ReleaseLeaseRequest,
  type ReleaseLeaseResponse,
  RenewLeasesRequest,
  type RenewLeasesResponse,
} from '../../gen/writ/v1/lease_service.js';
import type { CallOptions } from '../common/channel.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import {
  type Happened,
  LeaseSession,
  type SessionOutcome,
  type SessionQuestion,
  type Settled,
} from '../common/lease-session.js';
import { type AskOptions, StreamLost } from '../common/numbered-stream.js';

type Partial<M extends { fromPartial(partial: never): unknown }> = Parameters<M['fromPartial']>[0];

/** What an acquire was answered. */
export interface Acquired {
  readonly answer: AcquireWriteSetResponse;
  /** Of a place that the session keeps: resolves when there is reason to ask again. Null: the call itself has waited. */
  readonly settled: Promise<Settled> | null;
}

/** As a call of its own has. */
const ACQUIRE_TIMES = { timeoutMs: 25_000, silentMs: 5_000 };

/** Half of the time for the stream to say anything; the other half is for a call of its own. */
const timesOf = ({ timeoutMs }: { readonly timeoutMs: number }): AskOptions => ({ timeoutMs, silentMs: timeoutMs / 2 });
const inHalf = <O extends { readonly timeoutMs: number }>(options: O): O => ({
  ...options,
  timeoutMs: options.timeoutMs / 2,
});

const sessions = new WeakMap<WritClient, RunnerSession>();

/** The one session that all leases of a client share. */
export function sessionOf(client: WritClient): RunnerSession {
  let session = sessions.get(client);
  if (session === undefined) {
    session = new RunnerSession(client);
    sessions.set(client, session);
  }
  return session;
}

/**
 * The leases of a process on one stream, where there is one; else each call by itself. What was asked on a stream that ended
 * is asked again by itself: acquires and releases are the same however often they are made, and so are renewals.
 */
class RunnerSession {
  private readonly stream: LeaseSession | null;
  private readonly listeners = new Map<string, (event: Happened) => void>();

  constructor(private readonly client: WritClient) {
    const open = client.lease.session as WritClient['lease']['session'] | undefined;
    this.stream = open === undefined ? null : new LeaseSession(open, (leaseId, event) => this.tell(leaseId, event));
  }

  async acquire(request: Partial<typeof AcquireWriteSetRequest>, options: CallOptions): Promise<Acquired> {
    const { stream } = this;
    if (stream === null) return { answer: await this.client.lease.acquireWriteSet(request, options), settled: null };
    const value = this.complete(AcquireWriteSetRequest.fromPartial(request));
    const outcome = await this.ask(stream, { $case: 'acquireWriteSet', value }, ACQUIRE_TIMES, options.signal);
    if (outcome?.$case !== 'acquireWriteSet')
      return { answer: await this.client.lease.acquireWriteSet(request, options), settled: null };
    const answer = outcome.value;
    const settled = answer.outcome?.$case === 'waiting' ? stream.settled(answer.outcome.value.requestId) : undefined;
    return { answer, settled: settled ?? null };
  }

  async renew(
    request: Partial<typeof RenewLeasesRequest>,
    options: CallOptions & { readonly timeoutMs: number },
  ): Promise<RenewLeasesResponse> {
    const { stream } = this;
    if (stream === null) return this.client.lease.renewLeases(request, options);
    const value = this.complete(RenewLeasesRequest.fromPartial(request));
    const outcome = await this.ask(stream, { $case: 'renewLeases', value }, timesOf(options), options.signal);
    return outcome?.$case === 'renewLeases' ? outcome.value : this.client.lease.renewLeases(request, inHalf(options));
  }

  async release(
    request: Partial<typeof ReleaseLeaseRequest>,
    options: CallOptions & { readonly timeoutMs: number },
  ): Promise<ReleaseLeaseResponse> {
    const { stream } = this;
    if (stream === null) return this.client.lease.releaseLease(request, options);
    const value = this.complete(ReleaseLeaseRequest.fromPartial(request));
    const outcome = await this.ask(stream, { $case: 'releaseLease', value }, timesOf(options), options.signal);
    return outcome?.$case === 'releaseLease' ? outcome.value : this.client.lease.releaseLease(request, inHalf(options));
  }

  /** Hears what is pushed about a lease; returns how to stop listening. */
  listen(leaseId: string, listener: (event: Happened) => void): () => void {
    this.listeners.set(leaseId, listener);
    return () => {
      if (this.listeners.get(leaseId) === listener) this.listeners.delete(leaseId);
    };
  }

  /** Null: it is to be asked by a call of its own. */
  private async ask(
    stream: LeaseSession,
    call: SessionQuestion,
    times: AskOptions,
    signal: AbortSignal | undefined,
  ): Promise<SessionOutcome | null> {
    let outcome: SessionOutcome;
    try {
      outcome = await stream.ask(call, times, signal);
    } catch (error) {
      if (!(error instanceof StreamLost)) throw error;
      signal?.throwIfAborted();
      return null;
    }
    if (outcome.$case !== 'fault') return outcome;
    const error = WritError.fromFault(outcome.value);
    if (error.code === 'UNAVAILABLE') return null;
    throw error;
  }

  private complete<Q extends { namespace: string }>(request: Q): Q {
    if (request.namespace === '') request.namespace = this.client.namespace;
    return request;
  }

  /** Whoever has just been granted a lease listens a moment later than the answer is read, and hears then what came with it. */
  private tell(leaseId: string, event: Happened): void {
    const listener = this.listeners.get(leaseId);
    if (listener !== undefined) listener(event);
    else setImmediate(() => this.listeners.get(leaseId)?.(event));
  }
}
