import type { Interceptor, Metadata } from '@grpc/grpc-js';
import type {
  AmendWriteSetResponse,
  ReleaseLeaseResponse,
  RenewalResult,
  SessionEvent,
} from '../../gen/writ/v1/lease_service.js';
import type { LeaseEntry, Lease as LeaseRecord, Refusal } from '../../gen/writ/v1/types.js';
import { EndReason, RefusalKind } from '../../gen/writ/v1/types.js';
import { covers } from '../../route-table/segment.js';
import { backoffMs } from '../common/backoff.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { durationMs, toDuration } from '../common/time.js';
import { elapsedMs } from './clock.js';
import { kindName, LeaseLostError, LeaseReleasedError, RefusedError } from './errors.js';
import { LeaseEventHub, type LeaseEventName, type LeaseListener } from './events.js';
import { Notices } from './notices.js';
import { type PresentedCall, type PresentedRequestInit, Presenter } from './presenter.js';
import { sessionOf } from './session.js';
import type { Targets } from './targets.js';
import { scopeWord, type WriteSetChange, wireChange } from './write-set.js';

/** What happens to a lease while it is held, as options of a request; `lease.on` tells the same. See LeaseEvents. */
export interface LeaseWatch {
  /** A renewal is overdue; the lease still lives for `remainingMs`. */
  readonly onJeopardy?: (remainingMs: number, cause: Error) => void;
  /** A renewal came through again. */
  readonly onSafe?: () => void;
  /** Sticky: it never comes back. The signal has fired. */
  readonly onLost?: (error: LeaseLostError) => void;
  /** Another run waits for these resources. */
  readonly onAskedToYield?: (resources: readonly string[]) => void;
  /** Another run was granted a write on what is only read. */
  readonly onInputChanged?: (resource: string) => void;
  /** Asked before every renewal; `false` leaves it out, so that the lease ends by itself. For who knows that the work stands still. */
  readonly mayRenew?: () => boolean;
}

export interface LeaseOptions extends LeaseWatch {
  readonly client: WritClient;
  readonly namespace: string;
  readonly record: LeaseRecord;
  /** `elapsedMs()` when the request was sent that the record answers. */
  readonly sentAt: number;
  /** As asked for; absent: the conflict map's. */
  readonly ttlMs?: number | undefined;
  /** Where what the run presents may go. */
  readonly targets: Targets;
  /** W3C trace context for requests to targets that bring none of their own. */
  readonly traceparent?: string | undefined;
  /** It was granted to an earlier process, and much of its time may be gone: the first renewal is due now. */
  readonly resumed?: boolean;
}

/** The signal fires this long before the coordinator's expiry, so that a write under way can still end in time. */
const MARGIN_SHARE = 0.1;
const MIN_MARGIN_MS = 250;
/** Timers stand still while a machine sleeps, so the clock is looked at in between. */
const LOOK_EVERY_MS = 1_000;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 2_000;
const RELEASE_TIMEOUT_MS = 5_000;
/** Of a lost lease there is little left to give back, and often nobody to give it to. */
const RELEASE_LOST_TIMEOUT_MS = 1_000;
const MAX_MARKER_BYTES = 256;
/** The coordinator knows that it is over. */
const ENDED: ReadonlySet<RefusalKind> = new Set([RefusalKind.REFUSAL_KIND_ENDED, RefusalKind.REFUSAL_KIND_RUN_ENDED]);

/**
 * A held lease. It renews itself at a third of its ttl, and its `signal` aborts before the coordinator counts it as
 * expired, whatever happens to the network: the time left is reckoned from the moment a request was sent (F8).
 *
 * Renewing keeps the worker alive; only `progress` keeps a lease whose kind has a progress window (C6). Nothing claims
 * progress by itself.
 */
export class Lease {
  readonly id: string;
  readonly runId: string;
  readonly namespace: string;
  /** Aborts when the run may not write any more; its reason is a LeaseLostError, or what `interrupt` was given. */
  readonly signal: AbortSignal;
  /** Within this long the progress marker must change; undefined: no window applies. */
  readonly progressWindowMs: number | undefined;

  private readonly aborter = new AbortController();
  private readonly stopRenewing = new AbortController();
  private readonly hub = new LeaseEventHub();
  private readonly notices = new Notices(this.hub);
  private readonly presenter: Presenter;
  private state: 'safe' | 'jeopardy' | 'lost' | 'released' = 'safe';
  private record: LeaseRecord;
  private lostBy: LeaseLostError | undefined;
  private deadline = 0;
  /** Without a renewal until then the lease is in jeopardy, whether or not one has failed yet. */
  private overdueAt = 0;
  private ttl = 0;
  private marker: string | undefined;
  private failures = 0;
  /** Why it cannot be extended any more. */
  private ending: Refusal | undefined;
  /** The last renewal was left out, by `mayRenew`. */
  private heldBack = false;
  private lastFailure: Error | undefined;
  private renewing = false;
  private renewTimer: NodeJS.Timeout | undefined;
  private lookTimer: NodeJS.Timeout | undefined;
  private releasing: Promise<ReleaseLeaseResponse> | undefined;
  private readonly stopHearing: () => void;

  constructor(private readonly options: LeaseOptions) {
    const { record, sentAt } = options;
    this.id = record.leaseId;
    this.runId = record.runId;
    this.namespace = options.namespace;
    this.record = record;
    this.signal = this.aborter.signal;
    this.progressWindowMs = durationMs(record.progressWindow);
    this.presenter = new Presenter(this, options);
    this.listen(options);
    this.stopHearing = sessionOf(options.client).listen(this.id, (event) => this.hear(event));
    this.extended(record, sentAt);
    this.scheduleRenewal(sentAt, options.resumed === true ? 0 : undefined);
  }

  /**
   * What it covers. An amendment changes it; so can a change of the conflict map, which adds entries and may give new
   * tokens, and a child run that holds a part of it: what is suspended comes back with a new token. A renewal brings them,
   * and `refresh` at once.
   */
  get entries(): readonly LeaseEntry[] {
    return this.record.entries;
  }

  /** Why it was lost; undefined while it is not. */
  get lost(): LeaseLostError | undefined {
    return this.lostBy;
  }

  /** Milliseconds until the signal fires unless a renewal comes through; 0 when it has. */
  get remainingMs(): number {
    return this.isOver() ? 0 : Math.max(0, this.deadline - elapsedMs());
  }

  /** What another run waits for, as of the last renewal. */
  get askedToYield(): readonly string[] {
    return this.notices.askedToYield;
  }

  /** What it reads and another run was granted a write on since the grant, as of the last renewal. */
  get changedInputs(): readonly string[] {
    return this.notices.changedInputs;
  }

  /**
   * Listens to what happens to the lease; returns how to stop listening.
   *
   * @example
   * lease.on('asked_to_yield', ({ resources }) => finishSoon(resources));
   * lease.on('jeopardy', ({ remainingMs, cause }) => console.warn(`${remainingMs} ms left: ${cause.message}`));
   */
  on<E extends LeaseEventName>(event: E, listener: LeaseListener<E>): () => void {
    return this.hub.on(event, listener);
  }

  /**
   * The token to present with writes to a resource that the lease covers; undefined when it covers it not, only for
   * reading, or while a child run holds it.
   */
  token(resource: string): bigint | undefined {
    const tokens = this.entries
      .filter((entry) => covers({ resource: entry.resource, scope: scopeWord(entry.scope) }, resource))
      .filter((entry) => entry.fencingToken > 0n && !entry.suspended)
      .map((entry) => entry.fencingToken);
    return tokens.reduce<bigint | undefined>(
      (most, token) => (most === undefined || token > most ? token : most),
      undefined,
    );
  }

  /**
   * Throws when nothing may be written by this lease now. It looks at the clock by itself, since a process that was
   * suspended may come here before any of its timers has fired (F12). Whatever sends a write calls it last of all; the
   * moment that passes between this and the target is what the fence check is for.
   */
  assertHeld(): void {
    this.look();
    this.signal.throwIfAborted();
    if (this.state === 'released') throw new LeaseReleasedError(this.id);
  }

  /** Says how far the work has come; any value that changes when it has moved on. Sent with the next renewal. */
  progress(marker: string): void {
    if (Buffer.byteLength(marker) > MAX_MARKER_BYTES)
      throw new RangeError(`a progress marker has at most ${MAX_MARKER_BYTES} bytes`);
    if (marker === this.marker) return;
    this.marker = marker;
    // It was ending for want of progress, and here is some.
    if (this.ending?.kind === RefusalKind.REFUSAL_KIND_NO_PROGRESS) {
      this.ending = undefined;
      this.scheduleRenewal(Number.NEGATIVE_INFINITY);
    }
  }

  /** Asks what the lease covers now, such as after a child run has given a part of it back. */
  async refresh(): Promise<readonly LeaseEntry[]> {
    this.assertHeld();
    const request = { namespace: this.namespace, leaseId: this.id };
    const { lease } = await this.options.client.lease.getLease(request, { signal: this.stopRenewing.signal });
    if (lease !== undefined) this.covers(lease);
    return this.entries;
  }

  /**
   * Changes what the lease covers, all of it or nothing: `entries` and `token` are the new ones when it resolves. What is
   * added has a new token and must be free now, since nothing waits here. Throws a RefusedError, with the lease as it was;
   * after a WritError that leaves it open what happened, the same change by the same `idempotencyKey` finds out. In the
   * answer `effectiveAt` says from when on no target accepts what was given up.
   *
   * @example
   * await lease.amend({ add: [{ resource: 'dns/prod-eu', actions: ['point'] }], remove: ['release/prod-eu'] });
   */
  async amend(change: WriteSetChange): Promise<AmendWriteSetResponse> {
    this.assertHeld();
    const request = { namespace: this.namespace, runId: this.runId, leaseId: this.id, ...wireChange(change) };
    const answer = await this.options.client.lease.amendWriteSet(request, { signal: this.stopRenewing.signal });
    const { outcome } = answer;
    if (outcome === undefined) throw new WritError('INTERNAL', 'the answer to an amendment has no outcome');
    if (outcome.$case === 'refusal') {
      const { kind } = outcome.value;
      if (ENDED.has(kind)) this.lose('ended', outcome.value.message);
      throw new RefusedError(outcome.value);
    }
    this.covers(outcome.value);
    return answer;
  }

  /**
   * Fires the signal for a reason of the caller's own, such as SIGTERM. The lease is held, and renewed, until it is
   * released: what is under way may still write, and nobody else should meanwhile.
   */
  interrupt(reason: unknown): void {
    this.aborter.abort(reason);
  }

  /**
   * Ends the lease. Idempotent; also after it was lost. The signal does not fire: whoever releases has ended the work.
   * Throws a WritError when the coordinator cannot be told, within 5 s; the lease then ends at its expiry.
   */
  release(): Promise<ReleaseLeaseResponse> {
    this.releasing ??= this.sendRelease();
    return this.releasing;
  }

  /** For `await using`: gives it back; when that fails it ends at its expiry. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }

  // ------------------------------------------------------------------------------------------- what the run presents

  /** The headers that stand for the lease where no credential is presented: lease id, and a token for each resource in turn. */
  headers(...resources: readonly string[]): Record<string, string> {
    this.assertHeld();
    return this.presenter.leaseHeaders(resources);
  }

  /**
   * `fetch` for requests to a declared target: with the credential or the lease and its tokens, a correlation id and the
   * trace context, aborted when the lease is lost. Redirects are not followed: what is presented stays at its origin.
   * It never sends a write again by itself. Throws before anything is sent when the lease is not held any more, does not
   * cover what `writes` names, or the origin is that of no declared target.
   *
   * @example
   * const response = await lease.fetch('https://releases.example.com/releases/prod-eu/promote', {
   *   method: 'POST',
   *   writes: ['release/prod-eu'],
   *   headers: { 'if-match': etag },
   *   body: JSON.stringify({ image }),
   * });
   */
  fetch(url: string | URL, init: PresentedRequestInit = {}): Promise<Response> {
    return this.presenter.fetch(url, init);
  }

  /** Metadata for one call over gRPC, with what `fetch` would present. */
  metadata(call: PresentedCall): Promise<Metadata> {
    return this.presenter.metadata(call);
  }

  /**
   * Presents it with every call of a gRPC client, and cancels calls when the lease is lost. Give it only to clients that
   * are connected to that target, over TLS.
   *
   * @example
   * client.promote(request, { interceptors: [lease.interceptor({ audience: 'svc:release-api', writes: ['release/prod-eu'] })] }, done);
   */
  interceptor(call: PresentedCall): Interceptor {
    return this.presenter.interceptor(call);
  }

  private sendRelease(): Promise<ReleaseLeaseResponse> {
    const wasLost = this.state === 'lost';
    if (!wasLost) this.state = 'released';
    this.stopTimers();
    const request = {
      namespace: this.namespace,
      runId: this.runId,
      lease: { $case: 'leaseId' as const, value: this.id },
    };
    return sessionOf(this.options.client).release(request, {
      timeoutMs: wasLost ? RELEASE_LOST_TIMEOUT_MS : RELEASE_TIMEOUT_MS,
    });
  }

  private listen({ onJeopardy, onSafe, onLost, onAskedToYield, onInputChanged }: LeaseWatch): void {
    if (onJeopardy !== undefined) this.on('jeopardy', ({ remainingMs, cause }) => onJeopardy(remainingMs, cause));
    if (onSafe !== undefined) this.on('safe', onSafe);
    if (onLost !== undefined) this.on('lost', onLost);
    if (onAskedToYield !== undefined) this.on('asked_to_yield', ({ resources }) => onAskedToYield(resources));
    if (onInputChanged !== undefined) this.on('input_changed', ({ resource }) => onInputChanged(resource));
  }

  // ---------------------------------------------------------------------------------------------------- the deadline

  /** A record that answers a request of then: how long it lives from there. */
  private extended(record: LeaseRecord, sentAt: number): void {
    this.covers(record);
    this.ttl = durationMs(record.expiresIn) ?? 0;
    this.deadline = sentAt + this.ttl - Math.max(MIN_MARGIN_MS, this.ttl * MARGIN_SHARE);
    this.overdueAt = sentAt + this.ttl / 2;
    this.look();
  }

  /** Answers may overtake each other: the highest generation is the newest. */
  private covers(record: LeaseRecord): void {
    if (record.generation > this.record.generation) this.presenter.renewCredentials();
    if (record.generation >= this.record.generation) this.record = record;
  }

  private look(): void {
    clearTimeout(this.lookTimer);
    if (this.isOver()) return;
    const now = elapsedMs();
    if (this.deadline <= now) {
      this.lose(this.ending !== undefined || this.heldBack ? 'not_renewed' : 'unreachable', this.whyNotRenewed());
      return;
    }
    if (this.overdueAt <= now) this.endanger(this.lastFailure ?? new Error(this.whyNotRenewed()));
    const next = this.state === 'safe' ? Math.min(this.deadline, this.overdueAt) : this.deadline;
    this.lookTimer = setTimeout(() => this.look(), Math.min(next - now, LOOK_EVERY_MS)).unref();
  }

  private whyNotRenewed(): string {
    if (this.ending !== undefined) return `${kindName(this.ending.kind)}: ${this.ending.message}`;
    if (this.heldBack) return 'it was not renewed, since the work did not move on';
    if (this.lastFailure !== undefined)
      return `no renewal came through in time; the last one failed: ${this.lastFailure.message}`;
    return 'no renewal came through in time';
  }

  private lose(reason: LeaseLostError['reason'], detail: string): void {
    if (this.isOver()) return;
    this.state = 'lost';
    this.stopTimers();
    this.lostBy = new LeaseLostError(this.id, reason, detail);
    this.aborter.abort(this.lostBy);
    this.hub.emit('lost', this.lostBy);
  }

  private isOver(): boolean {
    return this.state === 'lost' || this.state === 'released';
  }

  private stopTimers(): void {
    clearTimeout(this.renewTimer);
    clearTimeout(this.lookTimer);
    this.stopRenewing.abort();
    this.stopHearing();
  }

  /** What the session tells. How much time is left, the lease reckons by itself, from when its renewals were sent. */
  private hear(event: NonNullable<SessionEvent['event']>): void {
    if (event.$case === 'lost') {
      const how = (EndReason[event.value.endReason] ?? '').replace('END_REASON_', '').toLowerCase();
      this.lose('ended', `the lease has ended: ${how}`);
    } else if (event.$case === 'askedToYield') this.notices.wantedNow(event.value.resource);
    else if (event.$case === 'inputChanged') this.notices.changedNow(event.value.resource, event.value.changedAt);
  }

  // ------------------------------------------------------------------------------------------------------- renewing

  /** At a third of the ttl after that moment; a tenth of it either way, so that many leases do not renew in step. */
  private scheduleRenewal(from: number, afterMs = (this.ttl / 3) * (0.9 + Math.random() * 0.2)): void {
    clearTimeout(this.renewTimer);
    if (this.isOver()) return;
    const delay = Math.max(0, from + afterMs - elapsedMs());
    this.renewTimer = setTimeout(() => void this.renew(), delay).unref();
  }

  private async renew(): Promise<void> {
    // After a long sleep this timer can be the first to fire, and the time is up.
    this.look();
    if (this.isOver() || this.renewing) return;
    this.heldBack = this.options.mayRenew?.() === false;
    if (this.heldBack) {
      this.scheduleRenewal(elapsedMs(), Math.min(this.ttl / 10, LOOK_EVERY_MS));
      return;
    }
    this.renewing = true;
    const sentAt = elapsedMs();
    const left = this.deadline - sentAt;
    const sentMarker = this.marker;
    try {
      const ttlMs = this.options.ttlMs;
      const { results } = await sessionOf(this.options.client).renew(
        {
          namespace: this.namespace,
          runId: this.runId,
          renewals: [
            {
              leaseId: this.id,
              ttl: ttlMs === undefined ? undefined : toDuration(ttlMs, 'ttlMs'),
              progressMarker: sentMarker,
            },
          ],
        },
        // Long enough for a slow answer, short enough to try again in the time that is left.
        { timeoutMs: Math.max(MIN_MARGIN_MS, left / 2), signal: this.stopRenewing.signal },
      );
      if (!this.isOver()) this.answered(results[0], sentAt, sentMarker);
    } catch (error) {
      if (!this.isOver()) this.failed(error as Error);
    } finally {
      this.renewing = false;
    }
  }

  private answered(
    { outcome, notices = [] }: Partial<RenewalResult> = {},
    sentAt: number,
    sentMarker: string | undefined,
  ): void {
    if (outcome === undefined) {
      this.failed(new WritError('INTERNAL', 'the answer to a renewal has no result'));
      return;
    }
    if (outcome.$case === 'refusal') {
      this.refused(outcome.value, this.marker !== sentMarker);
      return;
    }
    this.failures = 0;
    this.lastFailure = undefined;
    this.extended(outcome.value, sentAt);
    this.scheduleRenewal(sentAt);
    // The answer can have been so slow that the time is up, or nearly.
    if (this.state === 'jeopardy' && elapsedMs() < this.overdueAt) {
      this.state = 'safe';
      this.hub.emit('safe', undefined);
      this.look();
    }
    this.notices.hear(notices);
  }

  private refused(refusal: Refusal, progressedSince: boolean): void {
    const { kind } = refusal;
    if (ENDED.has(kind)) {
      this.lose('ended', refusal.message);
      return;
    }
    if (kind === RefusalKind.REFUSAL_KIND_NO_PROGRESS && progressedSince) {
      this.scheduleRenewal(Number.NEGATIVE_INFINITY);
      return;
    }
    // It lives to its expiry and no longer: max_hold, no_progress, too_late.
    this.ending = refusal;
    this.endanger(new Error(`${kindName(kind)}: ${refusal.message}`));
  }

  private failed(error: Error): void {
    if (error instanceof WritError && error.code === 'NOT_FOUND') {
      this.lose('ended', error.message);
      return;
    }
    this.lastFailure = error;
    this.failures += 1;
    const backoff = { firstMs: FIRST_RETRY_MS, mostMs: Math.min(MAX_RETRY_MS, this.ttl / 6) };
    this.scheduleRenewal(elapsedMs(), backoffMs(this.failures, backoff));
    this.endanger(error);
  }

  private endanger(cause: Error): void {
    if (this.state !== 'safe') return;
    this.state = 'jeopardy';
    this.hub.emit('jeopardy', { remainingMs: this.remainingMs, cause });
  }
}
