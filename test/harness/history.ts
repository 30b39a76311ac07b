import type { Access, Scope } from '../../src/domain/entry.js';
import type { EventRecord } from '../../src/storage/store.js';

/**
 * What happened, as those saw it who took part: every call with the moments between which it was decided, and what was
 * answered. Together with the exported log it is all that the checkers look at. Plain data, so that a history can be
 * written to a file and checked again.
 *
 * Moments of the harness are microseconds of its monotonic clock; `Reading` ties them to the database's clock.
 */
export type Moment = number;

export interface AskedEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  readonly actions: readonly string[];
}

export interface SeenEntry extends AskedEntry {
  /** 0: none. */
  readonly token: number;
  readonly exclusive: boolean;
  /** Only observed: it keeps nobody away. */
  readonly observed: boolean;
  /** A child run holds some of it: its own run may not use it. */
  readonly suspended: boolean;
}

/** A lease as an answer showed it; times are of the database. */
export interface SeenLease {
  readonly leaseId: string;
  readonly runId: string;
  readonly state: 'waiting' | 'active' | 'ended';
  /** 1 as it was granted; more after each change of its entries. */
  readonly generation: number;
  readonly entries: readonly SeenEntry[];
  readonly grantedAt: number | null;
  readonly expiresAt: number | null;
  readonly maxExpiresAt: number | null;
  readonly endReason: string;
}

/** What a credential says of itself. */
export interface SeenCredential {
  readonly jti: string;
  readonly audience: string;
  readonly runId: string;
  readonly leaseId: string;
  /** Seconds since 1970, as in the token. */
  readonly expires: number;
  readonly grants: readonly {
    readonly resources: readonly string[];
    readonly actions: readonly string[];
    readonly token: number;
  }[];
}

export interface CheckedWrite {
  readonly resource: string;
  readonly action: string;
  readonly token: number;
  readonly observedVersion: string | null;
}

/** What each kind of call asks and is told. */
export interface CallShapes {
  create_run: { asked: { key: string; authorityEndsAt: number }; told: { runId: string; revision: number } };
  acquire: {
    asked: {
      runId: string;
      key: string;
      entries: readonly AskedEntry[];
      waits: boolean;
      /** The lease of the parent run that it is to be a part of; empty: of none. */
      delegatedFrom: string;
    };
    told: (
      | { outcome: 'lease'; lease: SeenLease }
      | { outcome: 'waiting' }
      | { outcome: 'refusal'; refusal: string; cycle: readonly string[] }
    ) & { revision: number; credentials: readonly SeenCredential[] };
  };
  renew: {
    asked: { runId: string; leaseId: string };
    told: ({ outcome: 'lease'; lease: SeenLease } | { outcome: 'refusal'; refusal: string }) & { revision: number };
  };
  release: {
    asked: { runId: string; leaseId: string; key: string };
    told: {
      outcome: 'released' | 'already_ended' | 'nothing_held';
      endReason: string;
      revision: number;
      /** From when on, by the database's clock, no target lets it write, also none that does not ask; 0: not told. */
      effectiveAt: number;
    };
  };
  revoke: { asked: { leaseId: string }; told: { endReason: string; revision: number; effectiveAt: number } };
  stop_run: { asked: { runId: string }; told: { state: string; revision: number; effectiveAt: number } };
  check: {
    asked: { leaseId: string; jti: string; runId: string; writes: readonly CheckedWrite[] };
    told: {
      allowed: boolean;
      results: readonly { readonly allowed: boolean; readonly reason: string; readonly observedOnly: boolean }[];
      revision: number;
    };
  };
  /** A target decides by its view, without asking. */
  view: {
    asked: { leaseId: string; runId: string; writes: readonly CheckedWrite[] };
    told: { allowed: boolean; reason: string };
  };
  issue: {
    asked: { runId: string; leaseId: string; audience: string };
    told: { credential: SeenCredential | null; revision: number };
  };
  /** The runner kit took a write set, by however many calls. */
  held: {
    asked: { runId: string; key: string; entries: readonly AskedEntry[] };
    told: { leaseId: string; entries: readonly SeenEntry[] };
  };
  /** What the runner kit says of a lease: whether its run may go on to write. */
  holds: { asked: { leaseId: string; runId: string }; told: { holds: boolean } };
  /** A session told by itself what became of a lease, or of a place in the queue. */
  pushed: {
    asked: { leaseId: string };
    told:
      | { event: 'granted'; lease: SeenLease; revision: number }
      | { event: 'lost'; endReason: string }
      | { event: 'jeopardy' | 'safe' | 'asked_to_yield' | 'input_changed' | 'place_moved' };
  };
  put_map: { asked: { expectedVersion: number }; told: { version: number; revision: number } };
  checkpoint: { asked: Record<never, never>; told: { revision: number; hash: string } };
  /** A write at a target, let in by its guard; `position` is its place among the writes to that resource. */
  write: {
    asked: { resource: string; token: number; leaseId: string; exclusive: boolean };
    told: { accepted: boolean; position: number };
  };
  /** A holder opened the resource at the target before it read. */
  open: { asked: { resource: string; token: number }; told: { accepted: boolean } };
}

export type CallKind = keyof CallShapes;

/** Nobody answered, or what answered was a fault: it may have happened or not, unless the fault says that it did not. */
export interface Fault {
  readonly code: string;
  readonly reason: string;
}

export type CallOf<K extends CallKind> = {
  readonly id: number;
  readonly kind: K;
  /** Who asked. */
  readonly by: string;
  /** The replica, or the target. */
  readonly of: string;
  readonly sent: Moment;
  /** Null: nobody has answered. */
  readonly answered: Moment | null;
  readonly asked: CallShapes[K]['asked'];
  /** Null: a fault, or no answer. */
  readonly told: CallShapes[K]['told'] | null;
  readonly fault: Fault | null;
};

export type Call = { [K in CallKind]: CallOf<K> }[CallKind];

/** The database's clock, read between two moments. */
export interface Reading {
  readonly sent: Moment;
  readonly answered: Moment;
  readonly database: number;
}

/** A time in which nothing can be decided: what begins and ends within it must not be a yes (P8). */
export interface Outage {
  readonly from: Moment;
  readonly until: Moment;
  readonly what: string;
  /** The replica that cannot; empty: none can. */
  readonly of: string;
}

/** The database lost its last commits somewhere in here: what was answered before may be gone. */
export interface Loss {
  readonly from: Moment;
  readonly until: Moment;
}

export interface History {
  readonly calls: readonly Call[];
  readonly readings: readonly Reading[];
  readonly outages: readonly Outage[];
  readonly losses: readonly Loss[];
  /** As exported at the end; empty: it is not looked at. */
  readonly log: readonly EventRecord[];
}

/** A promise was broken; the ids are of calls and revisions that show it. */
export interface Violation {
  /** `P1` to `P10` (docs/concepts.md), or a requirement's id. */
  readonly promise: string;
  readonly what: string;
  readonly calls: readonly number[];
  readonly revisions: readonly number[];
  /** Leases, runs and resources in question. */
  readonly about: readonly string[];
}

export type Checker = (history: History) => Violation[];

/** A call that was answered as asked. */
export type Answered<K extends CallKind> = CallOf<K> & {
  readonly answered: Moment;
  readonly told: CallShapes[K]['told'];
};

export function answered<K extends CallKind>(history: Pick<History, 'calls'>, kind: K): Answered<K>[] {
  return history.calls.filter(
    (call): call is Answered<K> & Call => call.kind === kind && call.answered !== null && call.told !== null,
  );
}

export function callsOf<K extends CallKind>(history: Pick<History, 'calls'>, kind: K): CallOf<K>[] {
  return history.calls.filter((call): call is CallOf<K> & Call => call.kind === kind);
}

/** What of a history is about one of these ids, calls and events: where to look first. */
export function about(history: History, ids: readonly string[]): History {
  const names = ids.filter((id) => id !== '');
  const mentions = (value: unknown): boolean => {
    const text = JSON.stringify(value);
    return names.some((id) => text.includes(id));
  };
  return {
    ...history,
    calls: history.calls.filter((call) => mentions([call.asked, call.told])),
    log: history.log.filter((record) => mentions([record.leaseId, record.runId, record.resources, record.body])),
  };
}

export function groupBy<T>(list: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const name = nameOf(item);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [item]);
    else group.push(item);
  }
  return groups;
}
