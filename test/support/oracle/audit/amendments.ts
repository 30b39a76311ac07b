import type { LeaseAmended } from '../../../../src/domain/event.js';
import type { LeaseEntry } from '../../../../src/domain/lease.js';
import type { Micros } from '../../../../src/domain/time.js';
import { covers, nameOf } from '../entry.js';
import { promise } from '../violation.js';
import { type Audited, overAt } from './audited-lease.js';
import { lastBelieved } from './ends.js';
import type { Facts } from './facts.js';
import { inTurn, overNobody, overNoDoubt, underNoFreeze } from './in-the-way.js';
import { tokensInOrder } from './tokens.js';

/** P2, P5: what is new has a new token and was free; what is kept has its own and gives no more; no time moves out. */
export function leaseAmended(facts: Facts, body: LeaseAmended, time: Micros, databaseNow: Micros): void {
  const { leaseId, cause, entries, times, left, binding } = body;
  const before = facts.lease(leaseId);
  const run = facts.run(before.runId);
  promise(before.state === 'active' && overAt(before) > databaseNow, `P5: ${leaseId} was amended after its end`);
  promise(!run.ended && run.authorityEndsAt > databaseNow, `P6: ${leaseId} of an ended run was amended`);
  if (binding !== null) facts.bind(binding.scope, binding.key, leaseId, 'amend', binding.fingerprint);
  const known = new Set(before.entries.map((entry) => entry.token));
  tokensInOrder(facts, entries, time, (token) => !known.has(token));
  const fresh = entries.filter((entry) => entry.token === time);
  for (const entry of entries.filter((one) => !fresh.includes(one))) noMore(leaseId, entry, before);
  for (const entry of before.entries.filter(({ suspended }) => suspended))
    promise(
      entries.some((now) => nameOf(now) === nameOf(entry) && (now.suspended || now.token === time)),
      `P2: ${leaseId} has ${entry.resource} back without a new token`,
    );
  const isAsked = cause === 'amended';
  if (isAsked && fresh.length > 0)
    promise(run.mayAcquire, `P6: run ${before.runId} was given more although it may not acquire`);
  const names = new Set(entries.map(nameOf));
  const unasked = new Map([...before.unasked].filter(([name]) => names.has(name)));
  const after = facts.withUnasked({ ...before, ...times, entries, unasked, claimBy: null });
  promise((after.maxExpiresAt ?? 0) <= (before.maxExpiresAt ?? 0), `P5: ${leaseId} may live longer than before`);
  promise((after.expiresAt ?? 0) <= (after.maxExpiresAt ?? 0), `P5: ${leaseId} outlives its max hold`);
  const window = after.progressWindow ?? Number.POSITIVE_INFINITY;
  promise((after.expiresAt ?? 0) <= (after.progressAt ?? 0) + window, `P5: ${leaseId} outlives its progress window`);
  promise(facts.oracle.missing(entries).length === 0, `C3: ${leaseId} lacks ${facts.oracle.missing(entries)[0]}`);
  const added = { ...after, entries: fresh };
  if (cause === 'amended') inTurn(facts, { ...added, order: Number.POSITIVE_INFINITY }, time);
  overNobody(facts, { ...added, grantedAt: time }, !isAsked);
  // What comes back was its own, and nobody else's meanwhile.
  if (isAsked) overNoDoubt(facts, added);
  if (isAsked) underNoFreeze(facts, added);
  for (const open of facts.openWrites.values())
    if (open.leaseId === leaseId)
      promise(
        entries.some((entry) => entry.access === 'write' && covers(entry, open.resource)),
        `R4: ${leaseId} gave up ${open.resource}, and nobody knows what became of its write there`,
      );
  facts.leases.put(after);
  leftOver(facts, before, after, left, databaseNow);
}

/** What has an old token was held by it, and as strictly. */
function noMore(leaseId: string, entry: LeaseEntry, before: Audited): void {
  if (entry.access === 'read') return;
  const from = before.entries.some(
    (old) =>
      old.token === entry.token &&
      covers(old, entry.resource) &&
      (old.scope === 'subtree' || entry.scope === 'exact') &&
      (old.access === 'write' || entry.access === 'stable_read') &&
      (old.exclusive || !entry.exclusive) &&
      entry.actions.every((action) => old.actions.includes(action)),
  );
  promise(from, `P2: ${leaseId} has an old token for more than it held of ${entry.resource}`);
}

/** What was given up of view and local kinds can be accepted for as long as if the lease had ended. */
function leftOver(
  facts: Facts,
  before: Audited,
  after: Audited,
  left: LeaseAmended['left'],
  databaseNow: Micros,
): void {
  const entries = before.entries.filter((entry) => {
    const now = after.entries.find((one) => nameOf(one) === nameOf(entry));
    const isLess = now === undefined || (entry.exclusive && !now.exclusive) || (now.suspended && !entry.suspended);
    return before.unasked.has(nameOf(entry)) && isLess;
  });
  const { leaseId, runId } = before;
  const gone = `${leaseId} ${facts.revision}`;
  const { delegatedFrom } = before;
  if (left !== null)
    facts.delays.set(left.leaseId, { leaseId: left.leaseId, runId, delegatedFrom, entries, until: left.until });
  const names = new Set(entries.map(nameOf));
  const unasked = new Map([...before.unasked].filter(([name]) => names.has(name)));
  const until = lastBelieved(facts, { ...before, unasked }, databaseNow);
  if (entries.length > 0 && until > databaseNow) facts.accepted.set(gone, { leaseId: gone, runId, entries, until });
}
