import type { Amendment, Misfit } from '../amendment.js';
import type { ExpandedWriteSet } from '../conflict-map/index.js';
import { Fault, invalidArgument } from '../fault.js';
import type { Lease } from '../lease.js';
import { locksOf } from '../locks.js';
import { type Refusal, refuse } from '../refusal.js';
import { covers } from '../resource.js';
import { openWritesUnder } from '../state.js';
import { SECOND } from '../time.js';
import type { Decision } from './decision.js';

/** What an amendment asks for that cannot be meant of this lease. */
export function misfitFault({ kind, field, resource }: Misfit): Fault {
  const named = JSON.stringify(resource);
  switch (kind) {
    case 'not_held':
      return new Fault(
        'failed_precondition',
        'ENTRY_NOT_HELD',
        `${field}: the lease was not granted ${named} by name; GetLease shows its entries. What a rule implied goes with what implied it.`,
        { metadata: { field, resource } },
      );
    case 'no_downgrade':
      return invalidArgument([
        {
          field,
          description: `gives more than the lease holds on ${named}: access, scope and actions may only become less; what is more is to be added`,
        },
      ]);
    case 'nothing_left':
      return new Fault(
        'failed_precondition',
        'NOTHING_LEFT',
        'Nothing that was asked for would be left of the lease. Release it instead (ReleaseLease).',
      );
  }
}

/**
 * A tracked write of what is given up that is still open: it may land when others are granted the resource, which is
 * refused rather than put in doubt, since the run is alive and can wait for the report (R4, P8).
 */
export function openRefusal(decision: Decision, lease: Lease, { kept, added }: Amendment): Refusal | null {
  const entries = [...kept, ...added].filter((entry) => entry.access === 'write');
  const open = openWritesUnder(decision.state, lease).find(
    ({ resource, action }) => !entries.some((entry) => covers(entry, resource) && entry.actions.includes(action)),
  );
  return open === undefined ? null : stillOpen(open.resource, open.action, 'The lease keeps it until then.');
}

/** What a child run holds a part of is kept: the part would be of nothing. */
export function suspendedRefusal({ givenUp }: Amendment): Refusal | null {
  const suspended = givenUp.find((entry) => entry.suspended);
  if (suspended === undefined) return null;
  const named = JSON.stringify(suspended.resource);
  return refuse(
    'held',
    `A child run holds ${named}, or some of it, as a part of this lease.`,
    { action: 'End the lease of the child run first.', who: 'runner', retryable: true },
    { resource: suspended.resource },
  );
}

/** A part of a lease is never more than it was granted as: what is more is to be asked of the parent's lease anew. */
export function partRefusal({ delegatedFrom }: Lease): Refusal | null {
  if (delegatedFrom === '') return null;
  return refuse('outside_contract', 'The lease is a part of one of the parent run, and nothing can be added to it.', {
    action: 'Acquire what is to be added, as another part or in a lease of its own.',
    who: 'runner',
    retryable: false,
  });
}

export function stillOpen(resource: string, action: string, consequence: string): Refusal {
  return refuse(
    'in_doubt',
    `A tracked write (${action}) to ${JSON.stringify(resource)} was let in under the lease, and its outcome is not known yet. ${consequence}`,
    {
      action: 'Wait until its target has reported what became of it (ReportWrite), then ask again.',
      who: 'target',
      retryable: true,
    },
    { resource },
  );
}

export function sizeRefusal({ bounds }: Decision, { kept, added, addedRuleLocks }: Amendment): Refusal | null {
  const entries = [...kept, ...added];
  const named = entries.filter((entry) => entry.impliedBy === '').length;
  if (named > bounds.maxEntries) return tooLarge(`${named} entries`, bounds.maxEntries);
  const locks = locksOf(entries, []).length + addedRuleLocks.length;
  return locks > bounds.maxLocks ? tooLarge(`${locks} locks or more`, bounds.maxLocks) : null;
}

function tooLarge(what: string, most: number): Refusal {
  return refuse('limit', `The lease would have ${what} with the addition; at most ${most} are allowed.`, {
    action: 'Remove what is done with in the same call, or ask for the addition in a lease of its own.',
    who: 'runner',
    retryable: false,
  });
}

/** Nobody waits with an amendment: the lease would have to live on meanwhile with a write set that nobody knows. */
export function withoutWait(refusal: Refusal): Refusal {
  const action =
    'Ask again later, or for the grantable part; to wait, ask for it in a lease of its own (AcquireWriteSet).';
  return { ...refusal, resolution: { ...refusal.resolution, action } };
}

/** The expiry is not moved: what lives longer than a kind allows cannot be given that kind's resources. */
export function timesRefusal({ now }: Decision, lease: Lease, asked: ExpandedWriteSet): Refusal | null {
  const left = (lease.expiresAt ?? now) - now;
  const { maxTtl, maxHold, progressWindow } = asked;
  const longest = Math.min(maxTtl, maxHold, progressWindow ?? Number.POSITIVE_INFINITY);
  if (left <= longest) return null;
  const seconds = (micros: number): number => Math.floor(micros / SECOND);
  return refuse(
    'max_hold',
    `The lease lives for ${seconds(left)} s more, and a kind of what is added allows ${seconds(longest)} s at a time (its max_ttl, max_hold or progress window); an amendment does not move the expiry.`,
    {
      action: `Ask for it in a lease of its own, or when at most ${seconds(longest)} s are left.`,
      who: 'runner',
      retryable: true,
    },
    { resource: asked.entries[0]?.resource ?? '', retryAfter: left - longest },
  );
}
