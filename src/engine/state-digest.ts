import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Admission, isOpen } from '../domain/admission.js';
import type { DomainEvent } from '../domain/event.js';
import type { Freeze } from '../domain/freeze.js';
import { type Lease, type LeaseEntry, underLockDelay } from '../domain/lease.js';
import { hasEnded, type Run } from '../domain/run.js';
import type { State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';

/**
 * A digest of the live state, by which replicas find out that they do not have the same one (design: the log). An event
 * says at which revision it is taken: there every replica, whether it appended that event or follows it, keeps hold of the
 * records as they are. They are immutable, so that this costs one array of them, and they are hashed later, some at a
 * time. Another event tells the digest of whoever began. Whoever was loaded in between has nothing to compare.
 *
 * In it is what decides: who holds and awaits what, and until when. Free texts are not, since they are erased one day.
 */

/**
 * The form of the lines below. A release that takes something in, leaves it out, or says it in another way must have
 * another one: replicas of two releases side by side then compare nothing, instead of taking each other for broken.
 */
export const DIGEST_VERSION = 1;

/** Hashed in one turn of the event loop: about a millisecond. */
const LINES_PER_TURN = 50;
/** Revisions of which digests are kept, or made, at a time. */
const MAX_KEPT = 4;

/** What of a state is hashed, as it was at one revision. */
interface LiveRecords {
  readonly common: readonly unknown[];
  readonly leases: readonly Lease[];
  readonly runs: readonly Run[];
  readonly admissions: readonly Admission[];
  readonly freezes: readonly Freeze[];
}

/** 64 hexadecimal digits, the same in whatever order the records are kept; takes its time. */
export async function digestOf(state: State): Promise<string> {
  return hashed(liveRecords(state));
}

function liveRecords(state: State): LiveRecords {
  const { mapVersion, activeLeases, waitingLeases, delayedLeases, openWrites, inDoubt, localKindsFrom } = state;
  const common = [mapVersion, activeLeases, waitingLeases, delayedLeases, openWrites, inDoubt, localKindsFrom];
  const leases: Lease[] = [];
  for (const lease of state.leases.values()) if (lease.state !== 'ended' || underLockDelay(lease)) leases.push(lease);
  return {
    common,
    leases,
    runs: [...state.runs.values()].filter((run) => !hasEnded(run)),
    admissions: [...state.admissions.values()].filter(isOpen),
    freezes: [...state.freezes.values()],
  };
}

async function hashed(records: LiveRecords): Promise<string> {
  const sum = new Uint32Array(8);
  let lines = 0;
  for (const line of linesOf(records)) {
    const hash = createHash('sha256').update(JSON.stringify(line)).digest();
    for (let word = 0; word < sum.length; word += 1) sum[word] = (sum[word] as number) ^ hash.readUInt32BE(4 * word);
    lines += 1;
    if (lines % LINES_PER_TURN === 0) await nextTurn();
  }
  return [...sum].map((word) => word.toString(16).padStart(8, '0')).join('');
}

function* linesOf({ common, leases, runs, admissions, freezes }: LiveRecords): Iterable<readonly unknown[]> {
  yield ['state', ...common];
  for (const lease of leases) yield lineOfLease(lease);
  for (const run of runs) yield lineOfRun(run);
  for (const admission of admissions) yield lineOfAdmission(admission);
  for (const freeze of freezes) yield lineOfFreeze(freeze);
}

function lineOfLease(lease: Lease): readonly unknown[] {
  const { leaseId, runId, idempotencyKey, delegatedFrom, state, generation, ttl, waiting, lockDelay } = lease;
  const { createdAt, grantedAt, expiresAt, maxExpiresAt, maxTtl, progressWindow, progressAt, claimBy } = lease;
  return [
    ...['lease', leaseId, runId, idempotencyKey, delegatedFrom, state, generation, ttl],
    ...[createdAt, grantedAt, expiresAt, maxExpiresAt, maxTtl, progressWindow, progressAt, claimBy],
    lease.credentialsUntil,
    waiting && [waiting.queuedAt, waiting.waitsUntil, waiting.attachedUntil, waiting.attachment, waiting.attached],
    lockDelay?.until ?? null,
    lease.entries.map(lineOfEntry),
    lease.ruleLocks.map(({ key, mode, rule, entry }) => [key, mode, rule, entry]),
  ];
}

function lineOfEntry(entry: LeaseEntry): readonly unknown[] {
  const { resource, access, scope, actions, exclusive, mode, validation, maxViewAge } = entry;
  const { token, suspended, observedRefusal, observedVersion, impliedBy } = entry;
  return [
    ...[resource, access, scope, actions, exclusive, mode, validation, maxViewAge],
    ...[token, suspended, observedRefusal, observedVersion, impliedBy],
  ];
}

function lineOfRun(run: Run): readonly unknown[] {
  const { runId, state, blockCause, endsAs, principal, parentRunId, maxTtl, authorityEndsAt } = run;
  const allowed = run.allowed.map(({ pattern, actions }) => [pattern, actions]);
  return ['run', runId, state, blockCause, endsAs, principal, parentRunId, maxTtl, authorityEndsAt, allowed];
}

function lineOfAdmission(admission: Admission): readonly unknown[] {
  const { admissionId, leaseId, runId, resource, action, token, requestId, target, inDoubtSince, unsure } = admission;
  return ['admission', admissionId, leaseId, runId, resource, action, token, requestId, target, inDoubtSince, unsure];
}

function lineOfFreeze({ pattern, scope, deniesChecks, until, effectiveAt }: Freeze): readonly unknown[] {
  return ['freeze', pattern, scope, deniesChecks, until, effectiveAt];
}

/** How this replica's digest differs from the one in the log. */
export interface Divergence {
  readonly revision: number;
  readonly own: string;
  readonly logged: string;
}

/** The digests of one replica's state, as it was at the revisions that the log says. */
export class StateDigests {
  private readonly made = new Map<number, Promise<string>>();
  /** Time of the last event that began one; 0: none was seen. */
  begunAt: Micros = 0;
  /** Revision of the last event that began or told one. */
  lastRevision = 0;
  /** Told once, when a digest in the log is not this replica's. */
  onDiverged: (divergence: Divergence) => void = () => undefined;

  /** The state is as this event left it. */
  saw(state: State, { time, body }: DomainEvent, revision: number): void {
    if (body.kind === 'checkpoint_begun') {
      this.begunAt = time;
      this.lastRevision = revision;
      this.made.set(revision, hashed(liveRecords(state)));
      for (const [oldest] of this.made) if (this.made.size > MAX_KEPT) this.made.delete(oldest);
    } else if (body.kind === 'checkpoint_written') {
      this.lastRevision = revision;
      if (body.digestVersion === DIGEST_VERSION) void this.compare(body.revision, body.digest);
    }
  }

  /** Null: this replica did not see that revision. */
  async at(revision: number): Promise<string | null> {
    return (await this.made.get(revision)) ?? null;
  }

  private async compare(revision: number, logged: string): Promise<void> {
    const own = await this.at(revision);
    if (own !== null && own !== logged) this.onDiverged({ revision, own, logged });
  }
}
