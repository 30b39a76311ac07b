import { covers } from '../../support/oracle/entry.js';
import { Oracle, universeOf } from '../../support/oracle/write-sets.js';
import { type Answered, answered, type Call, type Checker, type Moment, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { isPartOf, type Knowledge, type KnownLease, knowledgeOf } from './knowledge.js';

/** A time in all of which a lease was alive (`sure`), or at some moment of which it was found alive. */
interface Alive {
  readonly lease: KnownLease;
  readonly from: Moment;
  readonly until: Moment;
  readonly sure: boolean;
  readonly call: Call;
}

/**
 * P1: no two live leases of different runs hold incompatible locks. From the answers alone: a lease was alive from when
 * somebody had been told of it until the last check or renewal that found it so was sent, since no lease is revived. In
 * that time nothing that is incompatible with it may be found alive, but what it is a part of; and of that no check lets
 * the parent write what the part holds. And from the log, by the auditor.
 */
export const p1: Checker = (history) => [...bySight(history), ...suspended(history), ...auditOf('P1')(history)];

const bySight: Checker = (history) => {
  const { leases } = knowledgeOf(history);
  const spans = [...leases.values()].flatMap(aliveTimes).sort((a, b) => a.from - b.from);
  const resources = [...leases.values()].flatMap((lease) => lease.entries.map(({ resource }) => resource));
  const oracle = new Oracle(universeOf([...new Set(resources)]));
  const violations: Violation[] = [];
  let current: Alive[] = [];
  for (const span of spans) {
    current = current.filter(({ until }) => until >= span.from);
    for (const other of current) {
      const both = isOfAnother(span.lease, other.lease, leases) && isTogether(other, span);
      const why = both ? incompatible(oracle, span.lease, other.lease) : '';
      if (why !== '') violations.push(violation(other, span, why));
    }
    current.push(span);
  }
  return violations;
};

function isOfAnother(a: KnownLease, b: KnownLease, leases: Knowledge['leases']): boolean {
  return a.runId !== b.runId && !isPartOf(a, b, leases) && !isPartOf(b, a, leases);
}

/** A check that was sent and answered while a child run surely held what the parent wanted to write. */
const suspended: Checker = (history) => {
  const { leases, leaseOf } = knowledgeOf(history);
  const parts = [...leases.values()].filter(({ delegatedFrom }) => delegatedFrom !== '');
  return answered(history, 'check').flatMap((check) => {
    const whole = leases.get(leaseOf(check));
    if (whole === undefined) return [];
    const out = parts.find(
      (part) =>
        check.sent >= part.toldAt &&
        check.answered <= part.aliveAt &&
        isPartOf(part, whole, leases) &&
        letIn(check).some((resource) =>
          firstSeen(part).some((entry) => entry.access !== 'read' && covers(entry, resource)),
        ),
    );
    return out === undefined ? [] : [suspendedViolation(check, whole, out)];
  });
};

function letIn({ asked, told }: Answered<'check'>): string[] {
  return asked.writes.flatMap(({ resource }, index) => {
    const result = told.results[index];
    return result?.allowed === true && !result.observedOnly ? [resource] : [];
  });
}

function suspendedViolation(check: Answered<'check'>, whole: KnownLease, part: KnownLease): Violation {
  return {
    promise: 'P1',
    what: `a write of lease ${whole.leaseId} was let in while ${part.leaseId}, a part of it, was held by a child run`,
    calls: [check.id],
    revisions: [],
    about: [whole.leaseId, part.leaseId],
  };
}

function aliveTimes(lease: KnownLease): Alive[] {
  const spans = lease.foundAlive.map((call) => ({
    lease,
    from: call.sent,
    until: call.answered as Moment,
    sure: false,
    call,
  }));
  const last = lease.foundAlive.find(({ sent }) => sent === lease.aliveAt);
  if (last === undefined || lease.toldAt > lease.aliveAt) return spans;
  return [{ lease, from: lease.toldAt, until: lease.aliveAt, sure: true, call: last }, ...spans];
}

/** `later` begins no earlier. Two that were each found alive at some moment may have been so one after the other. */
function isTogether(earlier: Alive, later: Alive): boolean {
  if (earlier.sure && later.sure) return true;
  if (earlier.sure) return later.until <= earlier.until;
  return later.sure && later.from <= earlier.from && earlier.until <= later.until;
}

function incompatible(oracle: Oracle, a: KnownLease, b: KnownLease): string {
  // What it had at the same time is not known where it changed; what it always had is.
  return oracle.incompatible(firstSeen(a), firstSeen(b));
}

const entriesOf = new WeakMap<KnownLease, Parameters<Oracle['incompatible']>[0]>();

function firstSeen(lease: KnownLease) {
  const ready = entriesOf.get(lease);
  if (ready !== undefined) return ready;
  const shown = lease.seen.map(({ lease: { entries } }) => entries);
  const logged = lease.logged.map(({ entries }) => entries);
  // What it was granted the answers show, if there are any.
  const seen = shown.length === 0 ? logged : [...shown, ...logged.slice(1)];
  const entries = (seen[0] ?? lease.entries)
    .filter((entry) =>
      seen.every((all) => all.some((other) => other.resource === entry.resource && other.access === entry.access)),
    )
    .map((entry) => ({ ...entry, mode: 'enforce' as const, observedRefusal: entry.observed ? 'held' : null }));
  entriesOf.set(lease, entries);
  return entries;
}

function violation(a: Alive, b: Alive, why: string): Violation {
  return {
    promise: 'P1',
    what: `leases ${a.lease.leaseId} and ${b.lease.leaseId} of two runs were alive together: ${why}`,
    calls: [a.call.id, b.call.id],
    revisions: [],
    about: [a.lease.leaseId, b.lease.leaseId],
  };
}
