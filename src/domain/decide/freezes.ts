import { type Kind, resolveResource } from '../conflict-map/index.js';
import type { Scope } from '../entry.js';
import { Fault, invalidArgument } from '../fault.js';
import { type Freeze, freezesOverlap, isPastFreeze, isUnder, MAX_FREEZES, MAX_NAMED_FREEZES } from '../freeze.js';
import { locksOfLease } from '../held-locks.js';
import { effectiveAt, isFreeByTime, isLive, type Lease, staysLocked, underLockDelay } from '../lease.js';
import { lockDelayUntil, WRITTEN_WITHIN } from '../lock-delay.js';
import { type Pattern, parsePattern } from '../pattern.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { grantWaiters, lookAgain } from './granting.js';

/** Freeze and Thaw (design: leases): an operator stops grants under a pattern, and lets them go on. */

export interface FreezeCommand {
  /** A pattern, a path or an alias. */
  readonly pattern: string;
  readonly scope: Scope;
  readonly deniesChecks: boolean;
  readonly until: Micros | null;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

export interface FreezeDecision {
  /** `strengthened`: the pattern was frozen, and is frozen longer, wider or harder now. */
  readonly outcome: 'frozen' | 'already_frozen' | 'strengthened';
  readonly freeze: Freeze;
  /** Of the conflict map, by pattern: those under it; at most as many as an answer names. */
  readonly kinds: readonly string[];
  /** Live leases that hold something under it: they go on. */
  readonly liveLeases: number;
  /** Requests that wait for something under it. */
  readonly waitingRequests: number;
}

/**
 * Freeze: once it is in the log nothing is granted under the pattern. The same again changes nothing, and one on other
 * terms never weakens the one that is there. Whoever stood in the queue behind what is frozen now may pass.
 */
export function decideFreeze(decision: Decision, command: FreezeCommand): FreezeDecision {
  const { state, now } = decision;
  if (command.until !== null && command.until <= now)
    throw invalidArgument([{ field: 'until', description: 'must be in the future of the database clock' }]);
  thawPast(decision);
  const { text, parsed } = patternOf(decision, command.pattern);
  const before = state.freezes.get(text);
  if (before === undefined && state.freezes.size >= MAX_FREEZES) throw tooMany();
  const wanted = wantedFreeze(decision, command, text, before);
  const isNews = before === undefined || !isSame(before, wanted);
  const kinds = state.map.kindIndex.overlapping(parsed, wanted.scope === 'subtree');
  const freeze = isNews ? inForce(decision, wanted, kinds) : before;
  const waiting = waitingUnder(decision, [freeze]);
  if (isNews) {
    const { requestIds } = command;
    decision.emit({ kind: 'pattern_frozen', freeze }, { resources: [text], requestIds });
    grantWaiters(decision, waiting.flatMap(locksOfLease));
  }
  return {
    outcome: before === undefined ? 'frozen' : isNews ? 'strengthened' : 'already_frozen',
    freeze,
    kinds: kinds.map((kind) => kind.pattern.text).slice(0, MAX_NAMED_FREEZES),
    liveLeases: [...state.leases.values()].filter((lease) => isLive(lease, now) && isTouched(lease, freeze)).length,
    waitingRequests: waiting.length,
  };
}

/** Its text in normal form: a path where an alias was given. */
function patternOf(decision: Decision, text: string): { text: string; parsed: Pattern } {
  const resolved = /[{}]/.test(text) ? null : resolveResource(decision.state.map, text);
  if (resolved !== null && !resolved.ok) throw invalidPattern(resolved.reason);
  const named = resolved === null ? text : resolved.resource;
  const parsed = parsePattern(named);
  if (!parsed.ok) throw invalidPattern(parsed.reason);
  return { text: named, parsed: parsed.pattern };
}

function invalidPattern(reason: string): Fault {
  const description = `is no pattern, path or alias: ${reason}`;
  return invalidArgument([{ field: 'pattern', description }]);
}

/** What is there is never weakened by another freeze of the same pattern: that is what Thaw is for. */
function wantedFreeze(
  { now, actor }: Decision,
  { scope, deniesChecks, until, reason }: FreezeCommand,
  pattern: string,
  before: Freeze | undefined,
): Freeze {
  const fresh = { pattern, reason, frozenBy: actor, frozenAt: now, effectiveAt: now };
  if (before === undefined) return { ...fresh, scope, deniesChecks, until };
  return {
    ...fresh,
    scope: before.scope === 'subtree' ? 'subtree' : scope,
    deniesChecks: before.deniesChecks || deniesChecks,
    until: before.until === null || until === null ? null : Math.max(before.until, until),
  };
}

function isSame(a: Freeze, b: Freeze): boolean {
  return a.scope === b.scope && a.deniesChecks === b.deniesChecks && a.until === b.until;
}

/**
 * With the time from which on no target lets in what it denies: targets that do not ask accept credentials that are out
 * until these are dead (P3), also those of leases that have ended, known or lost. The append proves that none was issued
 * long after this was decided.
 */
function inForce(decision: Decision, freeze: Freeze, kinds: readonly Kind[]): Freeze {
  if (!freeze.deniesChecks) return freeze;
  const { state, now } = decision;
  const closedUntil = kinds.some(({ validation }) => validation !== 'introspect') ? state.localKindsFrom : null;
  let latest = Math.max(now, closedUntil ?? 0);
  for (const lease of state.leases.values()) latest = Math.max(latest, believedUntil(decision, freeze, lease));
  if (latest > now) decision.relyOnFuture(now + WRITTEN_WITHIN);
  return { ...freeze, effectiveAt: latest };
}

/** Until when a target that does not ask may let in something under the freeze by this lease; 0: it does not. */
function believedUntil({ now, bounds }: Decision, freeze: Freeze, lease: Lease): Micros {
  const isOver = lease.state === 'active' ? isFreeByTime(lease, now) : !underLockDelay(lease);
  if (isOver) return 0;
  const entries = lease.entries.filter((entry) => isUnder(freeze, entry));
  if (underLockDelay(lease)) return entries.some(staysLocked) ? effectiveAt(lease) : 0;
  return lockDelayUntil({ ...lease, entries }, now, bounds) ?? 0;
}

function isTouched(lease: Lease, freeze: Freeze): boolean {
  return lease.entries.some((entry) => entry.access !== 'read' && isUnder(freeze, entry));
}

/** Requests that wait for something under one of the freezes. */
function waitingUnder({ state }: Decision, freezes: readonly Freeze[]): Lease[] {
  if (state.waitingLeases === 0) return [];
  const isWaiting = (lease: Lease): boolean =>
    lease.state === 'waiting' && freezes.some((freeze) => isTouched(lease, freeze));
  return [...state.leases.values()].filter(isWaiting);
}

export interface ThawCommand {
  readonly pattern: string;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

export interface ThawDecision {
  readonly outcome: 'thawed' | 'not_frozen';
  /** What was taken back; null: nothing. */
  readonly freeze: Freeze | null;
  /** Other freezes that keep a part of it frozen; at most as many as an answer names. */
  readonly stillFrozenBy: readonly Freeze[];
  /** Waiting requests that were granted by this. */
  readonly granted: number;
}

/** Thaw: takes back the freeze of exactly this pattern; whoever waited for it is granted in the same append (P9). */
export function decideThaw(decision: Decision, { pattern, reason, requestIds }: ThawCommand): ThawDecision {
  thawPast(decision);
  const { state } = decision;
  const { text } = patternOf(decision, pattern);
  const freeze = state.freezes.get(text);
  if (freeze === undefined) return { outcome: 'not_frozen', freeze: null, stillFrozenBy: [], granted: 0 };
  decision.emit({ kind: 'pattern_thawed', pattern: text, byTime: false, reason }, { resources: [text], requestIds });
  const before = decision.events.length;
  lookAgain(decision, waitingUnder(decision, [freeze]));
  return {
    outcome: 'thawed',
    freeze,
    stillFrozenBy: [...state.freezes.values()]
      .filter((other) => freezesOverlap(freeze, other))
      .slice(0, MAX_NAMED_FREEZES),
    granted: decision.events.slice(before).filter(({ body }) => body.kind === 'lease_granted').length,
  };
}

/** Writes the end of freezes whose time has come, before anything is granted under them; whoever waited goes first (P9). */
export function thawPast(decision: Decision): void {
  const { freezes } = decision.state;
  if (freezes.size === 0) return;
  const past = [...freezes.values()].filter((freeze) => isPastFreeze(freeze, decision.now));
  for (const { pattern, until } of past) {
    decision.relyOnPast(until ?? 0);
    decision.emit({ kind: 'pattern_thawed', pattern, byTime: true, reason: '' }, { resources: [pattern] });
  }
  if (past.length > 0) lookAgain(decision, waitingUnder(decision, past));
}

function tooMany(): Fault {
  return new Fault(
    'resource_exhausted',
    'TOO_MANY_FREEZES',
    `Nothing was frozen: ${MAX_FREEZES} patterns of this namespace are frozen, and each grant is compared with all of them. Thaw some, or freeze a wider pattern.`,
    { metadata: { limit: String(MAX_FREEZES) } },
  );
}
