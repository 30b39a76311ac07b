import type { Micros } from '../domain/time.js';
import type { DatabaseIdentity } from '../storage/store.js';

/** How the database fails over, by configuration. */
export type Failover = 'asynchronous' | 'synchronous';

/** A head that was seen before: by this replica, or by the witness outside the database. */
export interface SeenHead {
  readonly revision: number;
  readonly hash: string;
  /** Time of its event: tells a head of a lost branch from one that came after the loss was recorded. */
  readonly time: Micros;
}

export interface HistoryFacts {
  /** As last recorded in the log; null: none yet. */
  readonly recorded: DatabaseIdentity | null;
  readonly current: DatabaseIdentity;
  readonly failover: Failover;
  /** The furthest head seen before; null: no witness at all. */
  readonly seen: SeenHead | null;
  /** The hash the log now has at `seen.revision`; null: the log does not reach so far. */
  readonly hashAtSeen: string | null;
}

export type HistoryVerdict =
  /** The same database as recorded. */
  | { readonly kind: 'same' }
  /** Another identity, unbroken log: record it. */
  | { readonly kind: 'changed'; readonly why: string; readonly settle: boolean }
  /** Acknowledged history may be gone: every lease ends, every run is blocked (P2). */
  | { readonly kind: 'lost'; readonly why: string }
  /** An older timeline: a server that was failed over from; never believed. */
  | { readonly kind: 'disbelieved'; readonly why: string };

/** Whether acknowledged history can be missing from the database that answers now. */
export function judgeHistory(facts: HistoryFacts): HistoryVerdict {
  const { recorded, current, seen, hashAtSeen } = facts;
  if (recorded === null) return { kind: 'changed', why: 'first start on this database', settle: false };
  if (recorded.systemIdentifier !== current.systemIdentifier)
    return lost('it is another database cluster than the one recorded');
  if (recorded.databaseOid !== current.databaseOid || recorded.eventTableOid !== current.eventTableOid) {
    return lost('the log was reloaded into a new table or database');
  }
  if (current.timeline < recorded.timeline) {
    return {
      kind: 'disbelieved',
      why: `the server is on timeline ${current.timeline}, older than the recorded ${recorded.timeline}`,
    };
  }
  if (seen !== null && hashAtSeen !== seen.hash)
    return lost(`the log does not continue revision ${seen.revision}, which was seen before`);
  const restarted = recorded.postmasterStart !== current.postmasterStart;
  if (restarted && seen === null) return lost('the database was restarted and no witness says how far its log went');
  if (current.timeline > recorded.timeline) {
    return facts.failover === 'asynchronous'
      ? lost(`the database failed over to timeline ${current.timeline}, and asynchronous replication can lose commits`)
      : { kind: 'changed', why: `fail-over to timeline ${current.timeline}`, settle: true };
  }
  if (!restarted) return { kind: 'same' };
  return { kind: 'changed', why: 'the database was restarted; its log is unbroken', settle: false };
}

function lost(why: string): HistoryVerdict {
  return { kind: 'lost', why };
}

export function sameIdentity(a: DatabaseIdentity, b: DatabaseIdentity): boolean {
  return (
    a.systemIdentifier === b.systemIdentifier &&
    a.timeline === b.timeline &&
    a.databaseOid === b.databaseOid &&
    a.eventTableOid === b.eventTableOid &&
    a.postmasterStart === b.postmasterStart
  );
}
