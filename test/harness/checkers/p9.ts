import { Oracle, universeOf } from '../../support/oracle/write-sets.js';
import { type Answered, answered, type Checker, callsOf, type Moment, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { type Knowledge, type KnownLease, keyOf, knowledgeOf } from './knowledge.js';

/**
 * P9: waiters are served first come first served among conflicting requests; a deadlock is refused at once with its
 * cycle. From the answers: whoever had been told that it waits, and was granted in the end, was granted before everybody
 * who asked for something that conflicts only after that. A run that holds or awaits other things may have to pass, and
 * is left out here; the auditor judges it from the log.
 */
export const p9: Checker = (history) => [...outOfTurn(history), ...cycles(history), ...auditOf('P9')(history)];

const outOfTurn: Checker = (history) => {
  const knowledge = knowledgeOf(history);
  const byKey = new Map([...knowledge.leases.values()].map((lease) => [lease.key, lease]));
  const granted = [...knowledge.leases.values()].filter((lease) => tokenOf(lease) > 0);
  const resources = granted.flatMap((lease) => lease.entries.map(({ resource }) => resource));
  const oracle = new Oracle(universeOf([...new Set(resources)]));
  const violations: Violation[] = [];
  for (const [key, place] of firstPlaces(history)) {
    const waiter = byKey.get(key);
    if (waiter === undefined || tokenOf(waiter) === 0) continue;
    for (const other of granted) {
      // Only what was asked for while the first waited can have passed it. What is a part of a lease passes everybody.
      if (other.delegatedFrom !== '') continue;
      const passed = other.askedAt > place.answered && tokenOf(other) < tokenOf(waiter) && other.runId !== waiter.runId;
      if (!passed || mayPass(knowledge, other) || oracle.incompatible(enforced(waiter), enforced(other)) === '')
        continue;
      violations.push({
        promise: 'P9',
        what: `${other.leaseId} was granted before ${waiter.leaseId}, which had been told that it waits before the other asked`,
        calls: [place.id],
        revisions: [],
        about: [waiter.leaseId, other.leaseId],
      });
    }
  }
  return violations;
};

function firstPlaces(history: Parameters<Checker>[0]): Map<string, Answered<'acquire'>> {
  const places = new Map<string, Answered<'acquire'>>();
  for (const call of answered(history, 'acquire')) {
    if (call.told.outcome !== 'waiting') continue;
    const first = places.get(keyOf(call.asked));
    if (first === undefined || call.answered < first.answered) places.set(keyOf(call.asked), call);
  }
  return places;
}

/** Of the grant: later ones come by changes. */
function tokenOf({ entries }: KnownLease): number {
  const tokens = entries.map(({ token }) => token).filter((token) => token > 0);
  return tokens.length === 0 ? 0 : Math.min(...tokens);
}

/** What it was granted in its turn; what was added later came another way. */
function enforced(lease: KnownLease) {
  const granted = tokenOf(lease);
  return lease.entries
    .filter(({ token }) => token === granted)
    .map((entry) => ({ ...entry, mode: 'enforce' as const, observedRefusal: entry.observed ? 'held' : null }));
}

/** Its run may have held something, or waited for something, that somebody ahead of it waits for. */
function mayPass({ history, leases }: Knowledge, lease: KnownLease): boolean {
  const over = new Map([...leases.values()].map(({ key, overAt }) => [key, overAt]));
  return callsOf(history, 'acquire').some((call) => {
    const key = keyOf(call.asked);
    if (call.asked.runId !== lease.runId || key === lease.key) return false;
    const refusedAt = call.told?.outcome === 'refusal' ? (call.answered as Moment) : Number.POSITIVE_INFINITY;
    return Math.min(refusedAt, over.get(key) ?? Number.POSITIVE_INFINITY) >= lease.askedAt;
  });
}

const cycles: Checker = (history) =>
  answered(history, 'acquire').flatMap((call) => {
    if (call.told.outcome !== 'refusal' || call.told.refusal !== 'deadlock' || call.told.cycle.length > 0) return [];
    return [
      {
        promise: 'P9',
        what: 'a deadlock was refused without its cycle',
        calls: [call.id],
        revisions: [],
        about: [call.asked.runId],
      },
    ];
  });
