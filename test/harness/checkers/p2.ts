import { covers } from '../../support/oracle/entry.js';
import { type Checker, groupBy, type Moment, type SeenEntry, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { type KnownLease, knowledgeOf } from './knowledge.js';

/** A token that somebody was told. */
interface Told {
  readonly lease: KnownLease;
  readonly entry: SeenEntry;
  readonly call: number;
  readonly at: Moment;
}

/**
 * P2: for every resource tokens strictly increase in grant order, for ever: what was asked for after somebody had been
 * told a token on the resource, also one that the database has lost since, gets a greater one, and nobody else the same.
 */
export const p2: Checker = (history) => [...bySight(history), ...auditOf('P2')(history)];

const bySight: Checker = (history) => {
  const violations: Violation[] = [];
  const tokens = [...knowledgeOf(history).leases.values()].flatMap(firstTold).sort((a, b) => a.at - b.at);
  const byFirstSegment = groupBy(tokens, ({ entry }) => entry.resource.split('/')[0] ?? '');
  for (const group of byFirstSegment.values()) {
    for (const [index, later] of group.entries()) {
      for (const earlier of group.slice(0, index)) {
        if (earlier.lease === later.lease || !isOnOne(earlier.entry, later.entry)) continue;
        const same = earlier.entry.token === later.entry.token && earlier.entry.resource === later.entry.resource;
        const back = later.lease.askedAt > earlier.at && later.entry.token <= earlier.entry.token;
        if (same || back) violations.push(violation(earlier, later, same));
      }
    }
  }
  return violations;
};

/** Each entry with a token, by the first answer that showed it. */
function firstTold(lease: KnownLease): Told[] {
  const first = new Map<string, Told>();
  for (const { call, lease: shown } of lease.seen) {
    for (const entry of shown.entries) {
      const name = `${entry.resource} ${entry.access} ${entry.token}`;
      const at = call.answered as Moment;
      if (entry.token > 0 && at < (first.get(name)?.at ?? Number.POSITIVE_INFINITY))
        first.set(name, { lease, entry, call: call.id, at });
    }
  }
  return [...first.values()];
}

function isOnOne(a: SeenEntry, b: SeenEntry): boolean {
  return covers(a, b.resource) || covers(b, a.resource);
}

function violation(earlier: Told, later: Told, same: boolean): Violation {
  const how = same ? 'the same token as' : `the token ${later.entry.token}, not above`;
  return {
    promise: 'P2',
    what: `${later.lease.leaseId} got ${how} ${earlier.entry.token} of ${earlier.lease.leaseId} on ${later.entry.resource}`,
    calls: [earlier.call, later.call],
    revisions: [],
    about: [earlier.lease.leaseId, later.lease.leaseId],
  };
}
