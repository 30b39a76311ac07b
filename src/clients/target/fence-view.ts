import { setTimeout as pause } from 'node:timers/promises';
import type { FenceMark, LogPosition, WatchFencesResponse } from '../../gen/writ/v1/fence_service.js';
import { backoffMs } from '../common/backoff.js';
import type { CallOptions, Duplex } from '../common/channel.js';
import type { WritClient } from '../common/connect.js';
import { WritError } from '../common/errors.js';
import { timestampMicros } from '../common/time.js';
import { checkFence, type FenceDecision, type FenceQuestion } from './check.js';
import { FenceTable, type NotByView, notByView, TooManyFences } from './fence-table.js';
import { elapsedAtMost, type LocalMoment, localMoment } from './view-clock.js';

/** What a view follows, and how much of it. */
export interface FenceViewOptions {
  /** As the principal that the map calls the owner service. */
  readonly client: WritClient;
  /** Default: the client's. */
  readonly namespace?: string;
  /**
   * Live leases that the view may hold, 1 or more. Default 200,000, about 2.5 KB each with eight resources. Where there are more of them nothing is
   * decided by the view: a part of the leases would do, a part of their ends would not.
   */
  readonly maxLeases?: number;
  /** Hears what is for the service's own log: a watch that was cut off, a history that was lost. */
  readonly onProblem?: (what: string, error: unknown) => void;
}

/** A target's view of the fences: decides about `validation: view` kinds without asking. */
export interface FenceView {
  /**
   * Decides by what is known here, at once (C10). Denied with `view_not_ready`, `view_too_old`, `view_does_not_decide` or
   * `view_tracked_action` where only the coordinator can tell. Any other denial can be out of date: a lease that was
   * granted, renewed or amended a moment ago may not be known here yet. Nothing is recorded of it.
   */
  check(question: FenceQuestion): FenceDecision;
  /**
   * Decides by what is known here if that allows it; else, and where a credential is presented, asks the coordinator, which
   * also records what it denies (A1).
   */
  decide(question: FenceQuestion, options?: CallOptions): Promise<FenceDecision>;
  /** How old what is known is at most, in milliseconds; Infinity before the first mark. */
  readonly ageMs: number;
  /** Live leases that are known. */
  readonly leases: number;
  /** Resolves when it is able to decide for the first time; rejects when it is closed before. */
  ready(): Promise<void>;
  /** Ends it: nothing is decided any more. Idempotent. */
  close(): void;
}

const MAX_LEASES = 200_000;
/** Pings in the time that the shortest-lived view may be old; and their bounds. */
const PINGS_PER_AGE = 4;
const PING_MS = { least: 25, most: 1_000 };
/** A replica that says nothing for so long, though it is pinged, is left for another one. */
const PATIENCE_MS = 3_000;
const RECONNECT = { firstMs: 50, mostMs: 2_000 };
/** After more leases than there is room for: a snapshot is not read again and again for nothing. */
const TOO_MANY = { firstMs: 30_000, mostMs: 30_000 };

/**
 * Holds a view of the fences, by a watch that is opened again, on any replica, whenever it ends.
 *
 * @example
 * const view = createFenceView({ client: connectWrit({ endpoint: '127.0.0.1:7410', token }) });
 * await view.ready();
 * const decision = await view.decide({ leaseId, writes: [{ resource: 'wiki/home', action: 'edit', token, observedVersion }] });
 */
export function createFenceView(options: FenceViewOptions): FenceView {
  return new WatchedView(options);
}

type Watch = Duplex<
  Parameters<Awaited<ReturnType<WritClient['fence']['watchFences']>>['send']>[0],
  WatchFencesResponse
>;

/** What the last mark proved: everything that was in the log at that time of the database, which was not before the ping. */
interface Proof {
  readonly askedAt: LocalMoment;
  /** Microseconds. */
  readonly databaseTime: number;
}

class WatchedView implements FenceView {
  private readonly table: FenceTable;
  private readonly namespace: string;
  private position: LogPosition | undefined;
  private proof: Proof | null = null;
  private readonly closing = new AbortController();
  private failures = 0;
  private backoff = RECONNECT;
  private readonly firstMark: Promise<void>;
  private marked: () => void = () => undefined;

  constructor(private readonly options: FenceViewOptions) {
    const { maxLeases = MAX_LEASES, client } = options;
    if (!Number.isSafeInteger(maxLeases) || maxLeases < 1) throw new RangeError('maxLeases must be 1 or more');
    this.table = new FenceTable(maxLeases);
    this.namespace = orDefault(options.namespace ?? client.namespace);
    this.firstMark = new Promise((resolve, reject) => {
      this.marked = resolve;
      this.closing.signal.addEventListener('abort', () => reject(new Error('the view was closed')), { once: true });
    });
    this.firstMark.catch(() => undefined);
    void this.run();
  }

  get ageMs(): number {
    return this.proof === null ? Number.POSITIVE_INFINITY : elapsedAtMost(this.proof.askedAt);
  }

  get leases(): number {
    return this.table.size;
  }

  ready(): Promise<void> {
    return this.firstMark;
  }

  close(): void {
    this.closing.abort();
    this.table.forget();
    this.proof = null;
  }

  check(question: FenceQuestion): FenceDecision {
    const { writes } = question;
    if (question.credential !== undefined || orDefault(question.namespace ?? this.namespace) !== this.namespace)
      return undecided(writes.length, 'view_does_not_decide');
    const { proof } = this;
    if (proof === null) return undecided(writes.length, 'view_not_ready');
    const now = performance.now();
    const elapsed = elapsedAtMost(proof.askedAt, now);
    const databaseNow = proof.databaseTime + elapsed * 1_000;
    const seen = this.table.check(question, { databaseNow, ageMs: elapsed });
    const { allowed, fence } = seen;
    const first = allowed ? undefined : seen.writes.find((write) => !write.allowed);
    return {
      allowed,
      reason: allowed ? 'ok' : (first?.reason ?? 'view_does_not_decide'),
      message: first?.message ?? '',
      writes: seen.writes,
      logRevision: this.position?.revision,
      validUntil: allowed && fence !== null ? now + (fence.endsAt - databaseNow) / 1_000 : undefined,
      holder: allowed && fence !== null ? fence.holder : undefined,
      error: undefined,
    };
  }

  async decide(question: FenceQuestion, options?: CallOptions): Promise<FenceDecision> {
    const decision = this.check(question);
    // What an `observe` kind lets in all the same is recorded by the coordinator (C14).
    if (decision.allowed && decision.writes.every((write) => !write.observedOnly)) return decision;
    return checkFence(this.options.client, { namespace: this.namespace, ...question }, options);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      try {
        await this.watch();
      } catch (error) {
        if (signal.aborted) return;
        this.failed(error);
      }
      this.table.interrupted();
      await pause(backoffMs(Math.max(1, this.failures), this.backoff), undefined, { signal, ref: false }).catch(
        () => undefined,
      );
    }
  }

  /** What was read from another history is void; of a place that is too long ago what is known stays until the snapshot. */
  private failed(error: unknown): void {
    this.failures += 1;
    const reason = error instanceof WritError ? error.reason : '';
    if (reason === 'CURSOR_EXPIRED') this.position = undefined;
    if (reason === 'HISTORY_FORKED' || !(error instanceof WritError)) this.forget();
    this.backoff = error instanceof TooManyFences ? TOO_MANY : RECONNECT;
    this.options.onProblem?.('the watch of fences ended, and is opened again', error);
  }

  private forget(): void {
    this.table.forget();
    this.position = undefined;
    this.proof = null;
  }

  private async watch(): Promise<void> {
    const watch = await this.options.client.fence.watchFences({ signal: this.closing.signal });
    const pings = new Pings(watch, () => this.pingMs);
    try {
      const open = { namespace: this.namespace, resumeFrom: this.position, viewKindsOnly: true };
      watch.send({ said: { $case: 'open', value: open } });
      for await (const response of watch.received) {
        pings.heard();
        for (const { update } of response.updates) {
          if (update === undefined) continue;
          this.table.apply(update);
          if (update.$case === 'reached') this.position = update.value;
          if (update.$case === 'mark') this.mark(update.value, pings);
        }
        if (response.goingAway) {
          this.failures = 0;
          watch.leave();
          return;
        }
      }
    } finally {
      pings.stop();
      watch.cancel();
    }
  }

  private mark({ number, position, databaseTime }: FenceMark, pings: Pings): void {
    const askedAt = pings.answered(Number(number));
    const micros = timestampMicros(databaseTime);
    if (position !== undefined) this.position = position;
    if (askedAt === undefined || micros === undefined) return;
    this.proof = { askedAt, databaseTime: micros };
    this.failures = 0;
    this.marked();
  }

  private get pingMs(): number {
    const wished = this.table.leastViewAgeMs / PINGS_PER_AGE;
    return Math.min(PING_MS.most, Math.max(PING_MS.least, wished));
  }
}

/** The pings of one watch: each mark proves as much as its own ping says, and no more. */
class Pings {
  private readonly asked = new Map<number, LocalMoment>();
  private number = 0;
  private timer: NodeJS.Timeout | undefined;
  private heardAt = performance.now();
  private pingedAt = this.heardAt;

  constructor(
    private readonly watch: Watch,
    private readonly everyMs: () => number,
  ) {
    this.timer = setTimeout(() => this.ping(), 0).unref();
  }

  /** When it was asked; undefined: it never was. Earlier ones are answered too. */
  answered(number: number): LocalMoment | undefined {
    const moment = this.asked.get(number);
    if (moment === undefined) return undefined;
    for (const earlier of this.asked.keys()) {
      if (earlier > number) break;
      this.asked.delete(earlier);
    }
    return moment;
  }

  /** Also where a long snapshot comes first, the other side is there. */
  heard(): void {
    this.heardAt = performance.now();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private ping(): void {
    const now = performance.now();
    // Whoever was stopped itself has heard nothing either: that says nothing of the other side.
    if (now - this.pingedAt > PATIENCE_MS) this.heardAt = now;
    this.pingedAt = now;
    if (now - this.heardAt > PATIENCE_MS) {
      this.watch.leave();
      return;
    }
    this.number += 1;
    // The moment comes first: what is proved is not older than it.
    this.asked.set(this.number, localMoment());
    this.watch.send({ said: { $case: 'ping', value: { number: BigInt(this.number) } } });
    this.timer = setTimeout(() => this.ping(), this.everyMs()).unref();
  }
}

const orDefault = (namespace: string): string => (namespace === '' ? 'default' : namespace);

function undecided(asked: number, reason: NotByView): FenceDecision {
  const write = notByView(reason);
  return {
    allowed: false,
    reason,
    message: write.message,
    writes: Array.from({ length: asked }, () => write),
    logRevision: undefined,
    validUntil: undefined,
    holder: undefined,
    error: undefined,
  };
}
