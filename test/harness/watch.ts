import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { WritError } from '../../src/clients/common/errors.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import type { FenceUpdate, LogPosition } from '../../src/gen/writ/v1/fence_service.js';
import type { EventRecord } from '../../src/storage/store.js';
import type { Replica } from './cluster.js';
import type { Violation } from './history.js';
import type { Stage } from './stage.js';

/** What a watch told between two places of the log; a snapshot takes the place of all before it. */
export interface ToldSpan {
  readonly after: number;
  readonly upTo: number;
  readonly isSnapshot: boolean;
  /** `fence`, `renewed` or `ended`, and the digest of the lease. */
  readonly told: ReadonlySet<string>;
}

/** Follows all fences at one replica, opened again from the last place that was reached, and writes down what it is told. */
export class FenceWatch {
  readonly spans: ToldSpan[] = [];
  private position: LogPosition | undefined;
  private readonly closing = new AbortController();
  private readonly running: Promise<void>;
  private pings = 0n;

  private constructor(readonly replica: Replica) {
    this.running = this.run();
  }

  static open(stage: Stage, replica: Replica): FenceWatch {
    const watch = new FenceWatch(replica);
    stage.add(`watch of ${replica.name}`, () => watch.close());
    return watch;
  }

  /** Waits until everything up to this revision was told; how far it came, if it does not. */
  async until(revision: number, withinMs: number): Promise<number> {
    for (const until = performance.now() + withinMs; this.revision < revision; await pause(50))
      if (performance.now() > until) break;
    return this.revision;
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.running;
  }

  private get revision(): number {
    return Number(this.position?.revision ?? 0n);
  }

  private async run(): Promise<void> {
    const { signal } = this.closing;
    while (!signal.aborted) {
      try {
        await this.watch(signal);
      } catch (error) {
        // What was read from another history is void, and what is too long ago is told by a snapshot.
        if (error instanceof WritError && ['HISTORY_FORKED', 'CURSOR_EXPIRED'].includes(error.reason))
          this.position = undefined;
      }
      await pause(100, undefined, { signal }).catch(() => undefined);
    }
  }

  private async watch(signal: AbortSignal): Promise<void> {
    const watch = await this.replica.client('target').fence.watchFences({ signal });
    const open = { namespace: '', resumeFrom: this.position, viewKindsOnly: false };
    watch.send({ said: { $case: 'open', value: open } });
    // Also of a replica that stands still something comes, by and by, or its connection is cut.
    const pinging = setInterval(() => {
      this.pings += 1n;
      watch.send({ said: { $case: 'ping', value: { number: this.pings } } });
    }, 500);
    try {
      let told = new Set<string>();
      let isSnapshot = false;
      for await (const { updates, goingAway } of watch.received) {
        for (const { update } of updates) {
          if (update?.$case === 'snapshot') [told, isSnapshot] = [new Set(), true];
          const name = update === undefined ? '' : nameOf(update);
          if (name !== '') told.add(name);
          const reached = update === undefined ? undefined : reachedBy(update);
          if (reached === undefined) continue;
          this.spans.push({ after: this.revision, upTo: Number(reached.revision), isSnapshot, told });
          this.position = reached;
          [told, isSnapshot] = [new Set(), false];
        }
        if (goingAway) return;
      }
    } finally {
      clearInterval(pinging);
      watch.cancel();
    }
  }
}

type Update = NonNullable<FenceUpdate['update']>;

function nameOf(update: Update): string {
  switch (update.$case) {
    case 'fence':
    case 'renewed':
    case 'ended':
      return `${update.$case} ${Buffer.from(update.value.leaseDigest).toString('hex')}`;
    default:
      return '';
  }
}

function reachedBy(update: Update): LogPosition | undefined {
  if (update.$case === 'reached') return update.value;
  return update.$case === 'mark' ? update.value.position : undefined;
}

/** Never granted, so no fence. */
const NEVER_HELD = new Set(['withdrawn', 'timed_out', 'refused']);

/**
 * F21: a watch skips nothing. Every grant, renewal and end that the log has between two places was told between them. What
 * is told of a lease that is lent to a child run depends on what is out, and is left out here.
 */
export function missedBy(where: string, spans: readonly ToldSpan[], log: readonly EventRecord[]): Violation[] {
  const fences = fencesOf(log);
  return spans
    .filter(({ isSnapshot }) => !isSnapshot)
    .flatMap(({ after, upTo, told }) =>
      fences
        .slice(Math.max(0, after - 1), Math.max(0, upTo))
        .flat()
        .filter(({ revision, name }) => revision > after && revision <= upTo && !told.has(name))
        .map(({ revision, name, leaseId }) => ({
          promise: 'F21',
          what: `the watch at ${where} was told everything from revision ${after} to ${upTo}, but not that ${name} (lease ${leaseId}) at ${revision}`,
          calls: [],
          revisions: [revision],
          about: [leaseId],
        })),
    );
}

/** By revision less one: what a watch has to tell of each event. */
function fencesOf(log: readonly EventRecord[]) {
  const events = log.map((record) => ({ revision: record.revision, body: decodeEvent(record).body }));
  const lent = new Set(events.flatMap(({ body }) => (body.kind === 'lease_granted' ? [body.lease.delegatedFrom] : [])));
  return events.map(({ revision, body }) => {
    const tell = (kind: string, leaseId: string) => ({ revision, name: `${kind} ${digestOf(leaseId)}`, leaseId });
    if (body.kind === 'lease_granted') return [tell('fence', body.lease.leaseId)];
    if (body.kind === 'leases_renewed')
      return body.renewals.filter(({ leaseId }) => !lent.has(leaseId)).map(({ leaseId }) => tell('renewed', leaseId));
    if (body.kind === 'lease_ended' && !NEVER_HELD.has(body.endReason) && !lent.has(body.leaseId))
      return [tell('ended', body.leaseId)];
    return [];
  });
}

function digestOf(leaseId: string): string {
  return createHash('sha256').update(leaseId).digest('hex');
}
