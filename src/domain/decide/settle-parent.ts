import { metByParts } from '../delegation.js';
import { endsAt, isLive, type LeaseEntry } from '../lease.js';
import { isOver } from '../run.js';
import { changeWriteSet } from './change-write-set.js';
import type { Decision } from './decision.js';

/**
 * Suspends the entries of a lease that a child's part of it meets now, and gives those back that none does any more, with
 * new tokens (design: delegation). Called with every change of a part, so that it is in the same append. What the child
 * held of view and local kinds comes back when its lock delay is over (P3). Empty, or of a lease that is over: nothing.
 * Nor of a run that has just ended: all its leases end in this append, and nothing is given to it any more (P6).
 */
export function settleParent(decision: Decision, leaseId: string): void {
  if (leaseId === '') return;
  const parent = decision.state.leases.get(leaseId);
  if (parent === undefined || !isLive(parent, decision.now)) return;
  const run = decision.state.runs.get(parent.runId);
  if (run === undefined || isOver(run)) return;
  const met = metByParts(decision.state, parent);
  const changed = parent.entries.filter((entry, index) => entry.suspended !== met[index]);
  if (changed.length === 0) return;
  const suspended = changed.filter((entry) => !entry.suspended);
  const at = decision.nextToken();
  const settled = (entry: LeaseEntry, isMet: boolean): LeaseEntry => {
    if (entry.suspended === isMet) return entry;
    return isMet ? { ...entry, suspended: true } : { ...entry, suspended: false, token: at };
  };
  decision.relyOnFuture(endsAt(parent));
  changeWriteSet(decision, parent, at, {
    cause: suspended.length > 0 ? 'delegated' : 'returned',
    entries: parent.entries.map((entry, index) => settled(entry, met[index] === true)),
    givenUp: suspended,
    times: null,
    binding: null,
    resources: changed.map(({ resource }) => resource),
    requestIds: [],
  });
}
