import type { Checker, Moment, SeenEntry, Violation } from '../history.js';
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
  const before = new ToldByResource();
  for (const later of tokens) {
    for (const earlier of before.onOneWith(later.entry)) {
      if (earlier.lease === later.lease) continue;
      const same = earlier.entry.token === later.entry.token && earlier.entry.resource === later.entry.resource;
      const back = later.lease.askedAt > earlier.at && later.entry.token <= earlier.entry.token;
      if (same || back) violations.push(violation(earlier, later, same));
    }
    before.add(later);
  }
  return violations;
};

/** Tokens by the paths that they are about, as a history of very many leases cannot be looked through for each of them. */
class ToldByResource {
  private readonly at = new Map<string, Told[]>();
  private readonly below = new Map<string, Told[]>();

  add(told: Told): void {
    push(this.at, told.entry.resource, told);
    for (const path of above(told.entry.resource)) push(this.below, path, told);
  }

  /** Those of the resource itself, of a subtree that it is in, and of what is in its own. */
  *onOneWith({ resource, scope }: SeenEntry): Iterable<Told> {
    yield* this.at.get(resource) ?? [];
    for (const path of above(resource))
      for (const told of this.at.get(path) ?? []) if (told.entry.scope === 'subtree') yield told;
    if (scope === 'subtree') yield* this.below.get(resource) ?? [];
  }
}

function push(lists: Map<string, Told[]>, path: string, told: Told): void {
  const list = lists.get(path);
  if (list === undefined) lists.set(path, [told]);
  else list.push(told);
}

function above(resource: string): string[] {
  const segments = resource.split('/');
  return segments.slice(1).map((_, index) => segments.slice(0, index + 1).join('/'));
}

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
