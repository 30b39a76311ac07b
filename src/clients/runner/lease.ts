import type { ReleaseLeaseResponse } from '../../gen/writ/v1/lease_service.js';
import type { LeaseEntry, Lease as LeaseRecord, Refusal } from '../../gen/writ/v1/types.js';
import { RefusalKind, Scope } from '../../gen/writ/v1/types.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { durationMs, toDuration } from '../common/time.js';
import { elapsedMs } from './clock.js';
import { kindName, LeaseLostError } from './errors.js';

/** What happens to a lease while it is held. */
export interface LeaseWatch {
  /** A renewal is overdue; the lease still lives for `remainingMs`. */
  readonly onJeopardy?: (remainingMs: number, cause: Error) => void;
  /** A renewal came through again. */
  readonly onSafe?: () => void;
  /** Sticky: it never comes back. The signal has fired. */
  readonly onLost?: (error: LeaseLostError) => void;
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
  readonly entries: readonly LeaseEntry[];
  /** Aborts when the run may not write any more; its reason is a LeaseLostError. */
  readonly signal: AbortSignal;
  /** Within this long the progress marker must change; undefined: no window applies. */
  readonly progressWindowMs: number | undefined;

  private readonly aborter = new AbortController();
  private readonly stopRenewing = new AbortController();
  private state: 'safe' | 'jeopardy' | 'lost' | 'released' = 'safe';
  private deadline: number;
  private ttl: number;
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

  constructor(private readonly options: LeaseOptions) {
    const { record, sentAt } = options;
    this.id = record.leaseId;
    this.runId = record.runId;
    this.namespace = options.namespace;
    this.entries = record.entries;
    this.signal = this.aborter.signal;
    this.progressWindowMs = durationMs(record.progressWindow);
    this.ttl = durationMs(record.expiresIn) ?? 0;
    this.deadline = this.deadlineOf(sentAt, this.ttl);
    this.look();
    this.scheduleRenewal(sentAt);
  }

  /** Why it was lost; undefined while it is not. */
  get lost(): LeaseLostError | undefined {
    return this.state === 'lost' ? (this.signal.reason as LeaseLostError) : undefined;
  }

  /** Milliseconds until the signal fires unless a renewal comes through; 0 when it has. */
  get remainingMs(): number {
    return this.state === 'lost' || this.state === 'released' ? 0 : Math.max(0, this.deadline - elapsedMs());
  }

  /**
   * The token to present with writes to a resource that the lease covers; undefined when it covers it not, or only for
   * reading.
   */
  token(resource: string): bigint | undefined {
    const covers = (entry: LeaseEntry) =>
      entry.resource === resource || (entry.scope === Scope.SCOPE_SUBTREE && resource.startsWith(`${entry.resource}/`));
    const tokens = this.entries
      .filter((entry) => covers(entry) && entry.fencingToken > 0n)
      .map((entry) => entry.fencingToken);
    return tokens.reduce<bigint | undefined>(
      (most, token) => (most === undefined || token > most ? token : most),
      undefined,
    );
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

  /**
   * Ends the lease. Idempotent; also after it was lost. The signal does not fire: whoever releases has ended the work.
   * Throws a WritError when the coordinator cannot be told; the lease then ends at its expiry.
   */
  release(): Promise<ReleaseLeaseResponse> {
    this.releasing ??= this.sendRelease();
    return this.releasing;
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
    return this.options.client.lease.releaseLease(request, {
      timeoutMs: wasLost ? RELEASE_LOST_TIMEOUT_MS : RELEASE_TIMEOUT_MS,
    });
  }

  // ---------------------------------------------------------------------------------------------------- the deadline

  private deadlineOf(sentAt: number, expiresInMs: number): number {
    return sentAt + expiresInMs - Math.max(MIN_MARGIN_MS, expiresInMs * MARGIN_SHARE);
  }

  private look(): void {
    clearTimeout(this.lookTimer);
    if (this.isOver()) return;
    const left = this.deadline - elapsedMs();
    if (left <= 0) {
      this.lose(this.ending !== undefined || this.heldBack ? 'not_renewed' : 'unreachable', this.whyNotRenewed());
      return;
    }
    this.lookTimer = setTimeout(() => this.look(), Math.min(left, LOOK_EVERY_MS)).unref();
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
    const error = new LeaseLostError(this.id, reason, detail);
    this.aborter.abort(error);
    this.options.onLost?.(error);
  }

  private isOver(): boolean {
    return this.state === 'lost' || this.state === 'released';
  }

  private stopTimers(): void {
    clearTimeout(this.renewTimer);
    clearTimeout(this.lookTimer);
    this.stopRenewing.abort();
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
    if (this.isOver() || this.renewing) return;
    this.heldBack = this.options.mayRenew?.() === false;
    if (this.heldBack) {
      this.scheduleRenewal(elapsedMs(), Math.min(this.ttl / 10, LOOK_EVERY_MS));
      return;
    }
    this.renewing = true;
    const sentAt = elapsedMs();
    const left = this.deadline - sentAt;
    try {
      const ttlMs = this.options.ttlMs;
      const { results } = await this.options.client.lease.renewLeases(
        {
          namespace: this.namespace,
          runId: this.runId,
          renewals: [
            { leaseId: this.id, ttl: ttlMs === undefined ? undefined : toDuration(ttlMs), progressMarker: this.marker },
          ],
        },
        // Long enough for a slow answer, short enough to try again in the time that is left.
        { timeoutMs: Math.max(MIN_MARGIN_MS, left / 2), signal: this.stopRenewing.signal },
      );
      if (!this.isOver()) this.answered(results[0]?.outcome, sentAt);
    } catch (error) {
      if (!this.isOver()) this.failed(error as Error);
    } finally {
      this.renewing = false;
    }
  }

  private answered(
    outcome: { $case: 'lease'; value: LeaseRecord } | { $case: 'refusal'; value: Refusal } | undefined,
    sentAt: number,
  ): void {
    if (outcome === undefined) {
      this.failed(new WritError('INTERNAL', 'the answer to a renewal has no result'));
      return;
    }
    if (outcome.$case === 'refusal') {
      this.refused(outcome.value);
      return;
    }
    this.ttl = durationMs(outcome.value.expiresIn) ?? 0;
    this.deadline = this.deadlineOf(sentAt, this.ttl);
    this.failures = 0;
    this.lastFailure = undefined;
    this.look();
    this.scheduleRenewal(sentAt);
    if (this.state !== 'jeopardy') return;
    this.state = 'safe';
    this.options.onSafe?.();
  }

  private refused(refusal: Refusal): void {
    const { kind } = refusal;
    if (kind === RefusalKind.REFUSAL_KIND_ENDED || kind === RefusalKind.REFUSAL_KIND_RUN_ENDED) {
      this.lose('ended', refusal.message);
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
    this.endanger(error);
    const backoff = Math.min(MAX_RETRY_MS, this.ttl / 6, FIRST_RETRY_MS * 2 ** Math.min(this.failures - 1, 10));
    this.scheduleRenewal(elapsedMs(), backoff * (0.5 + Math.random() * 0.5));
  }

  private endanger(cause: Error): void {
    if (this.state !== 'safe') return;
    this.state = 'jeopardy';
    this.options.onJeopardy?.(this.remainingMs, cause);
  }
}
