import type { ConflictMapDocument } from '../../../../src/domain/conflict-map/document.js';
import type { Freeze } from '../../../../src/domain/freeze.js';
import type { Micros } from '../../../../src/domain/time.js';
import { nameOf } from '../entry.js';
import { isFrozen } from '../pattern.js';
import { type OracleHolder, OracleQueue } from '../queue.js';
import { promise } from '../violation.js';
import type { Oracle } from '../write-sets.js';
import { type Audited, type AuditedState, enforced, overAt } from './audited-lease.js';
import { LeaseBook } from './lease-book.js';

export interface AuditedRun {
  readonly principal: string;
  readonly parentRunId: string;
  readonly authorityEndsAt: Micros;
  readonly ended: boolean;
  readonly mayAcquire: boolean;
  readonly state: string;
}

/** A tracked write that was let in and of which nobody has said what became. */
export interface OpenWrite {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
}

/** What of a lease that has ended somebody may still act on. */
export interface Lingering extends OracleHolder {
  readonly until: Micros;
}

/** How long credentials can be accepted: of a credential, past its end, and how wrong the clock of a verifier may be. */
export interface OracleCredentials {
  readonly life: Micros;
  readonly tolerance: Micros;
  readonly skew: Micros;
}

/** What the log has said so far, folded by the auditor's own rules: the few facts that it needs. */
export class Facts {
  /** Of the last event. */
  revision = 0;
  readonly leases = new LeaseBook();
  readonly runs = new Map<string, AuditedRun>();
  /** Scope and key, and what it was bound to. */
  readonly keys = new Map<string, { readonly leaseId: string; readonly use: string; readonly fingerprint: string }>();
  /** By pattern. */
  readonly freezes = new Map<string, Freeze>();
  /** By admission. */
  readonly openWrites = new Map<string, OpenWrite>();
  /** Every admission there ever was. */
  readonly admitted = new Set<string>();
  lastToken: Micros = 0;
  mapPutAt: Micros = 0;
  sets: NonNullable<ConflictMapDocument['sets']> = {};
  /** Pairs that the admin let stand until they end. */
  readonly excused = new Set<string>();
  /** Ended leases that some view has not heard of, or of which some verifier within the skew still accepts a credential. */
  readonly accepted = new Map<string, Lingering>();
  /** Leases that a change of the map ended. */
  readonly endedByMap = new Set<string>();
  /** Lock delays whose end is not written. */
  readonly delays = new Map<string, Lingering>();
  /** Ended as taken over, by an append whose take-over is still to come. */
  readonly takenOver = new Map<string, Audited>();

  constructor(
    readonly oracle: Oracle,
    readonly credentials: OracleCredentials,
  ) {}

  /** From when on no view allows anything by the lease, and nobody accepts a credential of it, if it has ended. */
  acceptedUntil(leaseId: string): Micros {
    return this.accepted.get(leaseId)?.until ?? 0;
  }

  isLive(leaseId: string, databaseNow: Micros): boolean {
    const lease = this.leases.get(leaseId);
    if (lease?.state !== 'active' || overAt(lease) <= databaseNow) return false;
    const run = this.runs.get(lease.runId);
    return run !== undefined && !run.ended;
  }

  /** Whether an operator keeps a request from being granted. */
  isFrozen(lease: Pick<Audited, 'entries'>): boolean {
    return [...this.freezes.values()].some((freeze) => this.oracle.frozen(freeze, lease.entries) !== undefined);
  }

  /** Whether checks of writes to the resource are to be denied at this time. */
  deniesWrites(resource: string, now: Micros, frozenBefore = Number.POSITIVE_INFINITY): boolean {
    return [...this.freezes.values()].some(
      (freeze) =>
        freeze.deniesChecks &&
        freeze.frozenAt < frozenBefore &&
        (freeze.until ?? Number.POSITIVE_INFINITY) > now &&
        isFrozen(freeze, resource),
    );
  }

  /** Leases whose time is not over, and requests that wait, at one time. */
  queueAt(now: Micros): OracleQueue {
    const live = [...this.leases.active()].filter((lease) => overAt(lease) > now);
    const isEarly = (lease: Audited): boolean => lease.startsAt > now || this.isFrozen(lease);
    const waiting = [...this.leases.waiting.values()].map((lease) => ({ ...enforced(lease), early: isEarly(lease) }));
    return new OracleQueue(this.oracle, live, waiting);
  }

  /** What an ended lease was let in to write, and nobody knows whether it did: its resources are in doubt. */
  get inDoubt(): OpenWrite[] {
    return [...this.openWrites.values()].filter(({ leaseId }) => this.lease(leaseId).state === 'ended');
  }

  run(runId: string): AuditedRun {
    const run = this.runs.get(runId);
    promise(run !== undefined, `P7: the log speaks of run ${runId}, which was not made`);
    return run;
  }

  lease(leaseId: string): Audited {
    const lease = this.leases.get(leaseId);
    promise(lease !== undefined, `P7: the log speaks of lease ${leaseId}, which was not made`);
    return lease;
  }

  /** Changes a lease and returns what it was. */
  change(leaseId: string, state: AuditedState, changes: Partial<Audited>): Audited {
    const lease = this.lease(leaseId);
    promise(lease.state === state, `P5: ${leaseId} is ${lease.state}, not ${state}`);
    this.leases.put({ ...lease, ...changes });
    return lease;
  }

  /** P6: a key is bound once. */
  bind(scope: string, key: string, leaseId: string, use: string, fingerprint: string): void {
    const id = `${scope}\n${key}`;
    promise(!this.keys.has(id), `P6: the key ${key} of ${scope} is bound a second time`);
    this.keys.set(id, { leaseId, use, fingerprint });
  }

  wholeOf(lease: Audited): Audited | undefined {
    return lease.delegatedFrom === '' ? undefined : this.leases.get(lease.delegatedFrom);
  }

  isRelated(a: Audited, b: Audited): boolean {
    const isPart = (part: Audited, whole: Audited): boolean => {
      const above = this.wholeOf(part);
      return above !== undefined && (above.leaseId === whole.leaseId || isPart(above, whole));
    };
    return isPart(a, b) || isPart(b, a);
  }

  /** With what no target asks about by the map as it is now; what was so stays so. */
  withUnasked(lease: Audited): Audited {
    const unasked = new Map(lease.unasked);
    for (const { entry, known } of this.oracle.unasked(lease.entries)) {
      const before = unasked.get(nameOf(entry)) ?? { byCredential: false, viewAge: 0 };
      const viewAge = Math.max(before.viewAge, known.viewAge);
      unasked.set(nameOf(entry), { byCredential: before.byCredential || known.byCredential, viewAge });
    }
    return { ...lease, unasked };
  }
}
