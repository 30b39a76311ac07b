import type { DomainEvent } from '../../../src/domain/event.js';
import type { LeaseEntry } from '../../../src/domain/lease.js';
import { decodeEvent } from '../../../src/engine/event-codec.js';
import {
  type Answered,
  answered,
  type Call,
  type CallShapes,
  callsOf,
  type History,
  type Moment,
  type SeenCredential,
  type SeenEntry,
  type SeenLease,
} from '../history.js';

/** What a history says of one lease, from every answer that spoke of it. */
export interface KnownLease {
  readonly leaseId: string;
  runId: string;
  /** Run and key that it was asked for by; empty: not known. */
  key: string;
  /** The lease that it is a part of, of the parent run; empty: of none. */
  delegatedFrom: string;
  /** It was granted neither before this... */
  askedAt: Moment;
  /** ...nor after this: somebody was told. Infinity: nobody was. */
  toldAt: Moment;
  /** It was alive at some moment at or after this: a check or a renewal that was sent then found it so. */
  aliveAt: Moment;
  /** Calls each of which found it alive at a moment of their own. */
  readonly foundAlive: Call[];
  /** From here on it was over, for good and not by time alone: somebody was told. */
  overAt: Moment;
  overBy: Call | null;
  /** By the database's clock no target lets it write from here on, also none that does not ask. Infinity: not known. */
  effectiveAt: number;
  /** Every entry that any answer or event showed. */
  readonly entries: SeenEntry[];
  /** All entries at once, as its grant and each change in the log left them. */
  readonly logged: { readonly revision: number; readonly entries: readonly SeenEntry[] }[];
  /** Every end that it had in any answer or event, on the database's clock. */
  readonly expiries: Set<number>;
  /** The latest of them; 0: none is known. */
  lastExpiry: number;
  readonly seen: { readonly call: Call; readonly lease: SeenLease }[];
}

export interface LogEvent {
  readonly revision: number;
  readonly event: DomainEvent;
}

/** A history, read once for all checkers. */
export interface Knowledge {
  readonly history: History;
  readonly leases: ReadonlyMap<string, KnownLease>;
  readonly credentials: ReadonlyMap<string, { readonly call: Call; readonly credential: SeenCredential }>;
  readonly events: readonly LogEvent[];
  /** The lease that a check was about, by its id or by its credential; empty: none that is known. */
  leaseOf(check: Answered<'check'>): string;
  /** The database's clock at a moment was not before this. */
  earliest(moment: Moment): number;
  /** Both calls were decided on one history: none was lost between them. */
  inOneEra(a: Call, b: Call): boolean;
  /** What was answered by then may have been lost since. */
  mayBeLost(call: Call): boolean;
}

const known = new WeakMap<History, Knowledge>();

export function knowledgeOf(history: History): Knowledge {
  const ready = known.get(history) ?? learn(history);
  known.set(history, ready);
  return ready;
}

/** Reasons of a check that say that a lease is over by time, which the append of a renewal may still contradict (P5). */
const BY_TIME = new Set(['expired', 'no_progress', 'unclaimed']);
const OVER = new Set([
  'released',
  'revoked',
  'run_stopped',
  'run_ended',
  'taken_over',
  'database_changed',
  'map_changed',
  'parent_ended',
]);

/** A reading of the clock that took longer says too little. */
const PRECISE: Moment = 50_000;

function learn(history: History): Knowledge {
  const leases = new Map<string, KnownLease>();
  const credentials = new Map<string, { call: Call; credential: SeenCredential }>();
  const events = history.log.map((record) => ({ revision: record.revision, event: decodeEvent(record) }));
  const leaseOf = ({ asked }: Answered<'check'>) =>
    asked.leaseId !== '' ? asked.leaseId : (credentials.get(asked.jti)?.credential.leaseId ?? '');

  for (const call of history.calls) learnSeen(call, leases, credentials);
  for (const { revision, event } of events) learnLogged(revision, event, leases);
  const askedAt = new Map<string, Moment>();
  for (const { asked, sent } of callsOf(history, 'acquire')) {
    const key = keyOf(asked);
    askedAt.set(key, Math.min(askedAt.get(key) ?? sent, sent));
  }
  for (const lease of leases.values()) lease.askedAt = askedAt.get(lease.key) ?? Number.NEGATIVE_INFINITY;
  for (const check of answered(history, 'check')) {
    const lease = leases.get(leaseOf(check));
    if (lease !== undefined) learnChecked(check, lease);
  }
  learnEnds(history, leases);
  for (const lease of leases.values()) endsWithWhole(lease, leases);

  const offset = clockOffset(history);
  return {
    history,
    leases,
    credentials,
    events,
    leaseOf,
    earliest: (moment) => moment + offset,
    inOneEra: (a, b) =>
      history.losses.every(({ from, until }) => isBefore(a, from) === isBefore(b, from) && sideOf(a, b, from, until)),
    mayBeLost: (call) => history.losses.some(({ until }) => call.sent <= until),
  };
}

const isBefore = (call: Call, from: Moment): boolean => (call.answered ?? Number.POSITIVE_INFINITY) < from;

/** Neither was under way while history was lost. */
function sideOf(a: Call, b: Call, from: Moment, until: Moment): boolean {
  return [a, b].every((call) => isBefore(call, from) || call.sent > until);
}

export function keyOf({ runId, key }: { readonly runId: string; readonly key: string }): string {
  return `${runId} ${key}`;
}

function entryOf(leases: Map<string, KnownLease>, leaseId: string, runId: string): KnownLease {
  let lease = leases.get(leaseId);
  if (lease === undefined) {
    lease = {
      leaseId,
      runId,
      key: '',
      delegatedFrom: '',
      askedAt: Number.NEGATIVE_INFINITY,
      toldAt: Number.POSITIVE_INFINITY,
      aliveAt: Number.NEGATIVE_INFINITY,
      foundAlive: [],
      overAt: Number.POSITIVE_INFINITY,
      overBy: null,
      effectiveAt: Number.POSITIVE_INFINITY,
      entries: [],
      logged: [],
      expiries: new Set(),
      lastExpiry: 0,
      seen: [],
    };
    leases.set(leaseId, lease);
  }
  return lease;
}

function learnSeen(
  call: Call,
  leases: Map<string, KnownLease>,
  credentials: Map<string, { call: Call; credential: SeenCredential }>,
): void {
  const { told, answered: at } = call;
  if (told === null || at === null) return;
  if (call.kind === 'acquire')
    for (const credential of call.told?.credentials ?? []) credentials.set(credential.jti, { call, credential });
  if (call.kind === 'issue' && call.told?.credential != null)
    credentials.set(call.told.credential.jti, { call, credential: call.told.credential });
  if (call.kind === 'held' && call.told !== null) {
    const entry = entryOf(leases, call.told.leaseId, call.asked.runId);
    entry.key = keyOf(call.asked);
    entry.toldAt = Math.min(entry.toldAt, at);
    entry.entries.push(...call.told.entries);
  }
  if (call.kind === 'pushed' && call.told !== null) learnPushed(call, call.asked, call.told, at, leases);
  if ((call.kind !== 'acquire' && call.kind !== 'renew') || call.told?.outcome !== 'lease') return;
  const { lease } = call.told;
  const entry = entryOf(leases, lease.leaseId, lease.runId);
  if (call.kind === 'acquire') {
    entry.key = keyOf(call.asked);
    entry.delegatedFrom = call.asked.delegatedFrom;
  }
  shown(entry, call, at, lease);
  // An acquire that is asked again tells what was granted before: it found nothing alive just now.
  if (call.kind === 'renew' && lease.state === 'active') alive(entry, call);
}

function learnPushed(
  call: Call,
  { leaseId }: CallShapes['pushed']['asked'],
  told: CallShapes['pushed']['told'],
  at: Moment,
  leases: Map<string, KnownLease>,
): void {
  if (told.event === 'granted') shown(entryOf(leases, leaseId, told.lease.runId), call, at, told.lease);
  // That a lease is lost is told once its end is written: also an end by time is for good then.
  const lease = leases.get(leaseId);
  if (told.event === 'lost' && lease !== undefined) over(lease, call, at);
}

function shown(entry: KnownLease, call: Call, at: Moment, lease: SeenLease): void {
  entry.seen.push({ call, lease });
  entry.entries.push(...lease.entries);
  expires(entry, lease.expiresAt);
  if (lease.state === 'ended' && !BY_TIME.has(lease.endReason)) over(entry, call, at);
  if (lease.state === 'active') entry.toldAt = Math.min(entry.toldAt, at);
}

function expires(lease: KnownLease, at: number | null): void {
  if (at === null) return;
  lease.expiries.add(at);
  lease.lastExpiry = Math.max(lease.lastExpiry, at);
}

function alive(lease: KnownLease, call: Call): void {
  lease.aliveAt = Math.max(lease.aliveAt, call.sent);
  lease.foundAlive.push(call);
}

function over(lease: KnownLease, call: Call, at: Moment): void {
  if (at >= lease.overAt) return;
  lease.overAt = at;
  lease.overBy = call;
}

/** Of the log only what no answer may have said: times and entries. */
function learnLogged(revision: number, { runId, body }: DomainEvent, leases: Map<string, KnownLease>): void {
  if (body.kind === 'leases_renewed') {
    for (const { leaseId, expiresAt } of body.renewals) {
      const lease = leases.get(leaseId);
      if (lease !== undefined) expires(lease, expiresAt);
    }
  }
  if (body.kind === 'lease_granted') {
    const { leaseId, idempotencyKey, delegatedFrom, expiresAt } = body.lease;
    const lease = entryOf(leases, leaseId, body.lease.runId);
    lease.key = keyOf({ runId: body.lease.runId, key: idempotencyKey });
    lease.delegatedFrom = delegatedFrom;
    expires(lease, expiresAt);
    loggedEntries(lease, revision, body.lease.entries);
  }
  if (body.kind === 'lease_reexpanded') {
    const lease = leases.get(body.leaseId);
    if (lease !== undefined) loggedEntries(lease, revision, body.entries);
  }
  if (body.kind === 'lease_amended') loggedEntries(entryOf(leases, body.leaseId, runId), revision, body.entries);
}

function loggedEntries(lease: KnownLease, revision: number, entries: readonly LeaseEntry[]): void {
  const seen = entries.map((entry) => ({ ...entry, observed: entry.observedRefusal !== null }));
  lease.entries.push(...seen);
  lease.logged.push({ revision, entries: seen });
}

function learnChecked(check: Answered<'check'>, lease: KnownLease): void {
  if (isAllowed(check)) {
    alive(lease, check as Call);
    lease.toldAt = Math.min(lease.toldAt, check.answered);
  }
  if (check.told.results.some(({ reason }) => OVER.has(reason))) over(lease, check as Call, check.answered);
}

/** Something was let in that is enforced, not only watched. */
export function isAllowed({ told }: Answered<'check'>): boolean {
  return told.results.some(({ allowed, observedOnly }) => allowed && !observedOnly);
}

function learnEnds(history: History, leases: Map<string, KnownLease>): void {
  const byKey = new Map([...leases.values()].map((lease) => [lease.key, lease]));
  for (const call of answered(history, 'release')) {
    if (call.told.outcome === 'nothing_held') continue;
    const lease = leases.get(call.asked.leaseId) ?? byKey.get(keyOf(call.asked));
    if (lease !== undefined) ended(lease, call as Call, call);
  }
  for (const call of answered(history, 'revoke')) {
    const lease = leases.get(call.asked.leaseId);
    if (lease !== undefined) ended(lease, call as Call, call);
  }
  const stopped = new Map<string, Answered<'stop_run'>>();
  for (const call of answered(history, 'stop_run')) {
    const { runId } = call.asked;
    if (call.answered < (stopped.get(runId)?.answered ?? Number.POSITIVE_INFINITY)) stopped.set(runId, call);
  }
  for (const lease of leases.values()) {
    const stop = stopped.get(lease.runId);
    if (stop !== undefined) ended(lease, stop as Call, stop);
  }
}

/** Whoever ends the whole ends its parts first. */
function endsWithWhole(part: KnownLease, leases: ReadonlyMap<string, KnownLease>): void {
  const whole = leases.get(part.delegatedFrom);
  if (whole === undefined) return;
  endsWithWhole(whole, leases);
  if (whole.overBy !== null) over(part, whole.overBy, whole.overAt);
}

/** Whether the first is a part of the second, or a part of a part. */
export function isPartOf(part: KnownLease, whole: KnownLease, leases: ReadonlyMap<string, KnownLease>): boolean {
  const above = leases.get(part.delegatedFrom);
  return above !== undefined && (above === whole || isPartOf(above, whole, leases));
}

function ended(
  lease: KnownLease,
  call: Call,
  { answered: at, told }: { readonly answered: Moment; readonly told: { readonly effectiveAt: number } },
): void {
  over(lease, call, at);
  if (told.effectiveAt > 0) lease.effectiveAt = Math.min(lease.effectiveAt, told.effectiveAt);
}

/**
 * What the database's clock shows is at least the harness's plus this, whichever of the readings is believed. None: no
 * moment is late enough to say that anything is over by time.
 */
function clockOffset(history: History): number {
  const precise = history.readings.filter(({ sent, answered: at }) => at - sent <= PRECISE);
  if (precise.length === 0) return Number.NEGATIVE_INFINITY;
  return Math.min(...precise.map(({ answered: at, database }) => database - at));
}
