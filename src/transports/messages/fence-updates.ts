import type { LeaseEntry } from '../../domain/lease.js';
import type * as wire from '../../gen/writ/v1/fence_service.js';
import type { FenceUpdate } from '../../services/fence-watches.js';
import { ACCESS_TO_WIRE, FENCE_REASON_TO_WIRE, SCOPE_TO_WIRE, toDuration, toTimestamp } from './convert.js';

/** What watches of fences are told. */

const toPosition = ({ revision, hash }: { revision: number; hash: string }): wire.LogPosition => ({
  revision: BigInt(revision),
  hash,
});

/** One thing that is told, as it is sent. */
export function toUpdate(update: FenceUpdate): wire.FenceUpdate {
  return { update: toOneof(update) };
}

function toOneof(update: FenceUpdate): NonNullable<wire.FenceUpdate['update']> {
  switch (update.kind) {
    case 'snapshot':
      return {
        $case: 'snapshot',
        value: { mapVersion: BigInt(update.mapVersion), maxClockSkew: toDuration(update.maxClockSkew) },
      };
    case 'watched_kind': {
      const { pattern, decides, maxViewAge, observes, trackedActions } = update.watchedKind;
      return {
        $case: 'kind',
        value: {
          pattern,
          decides,
          maxViewAge: decides ? toDuration(maxViewAge) : undefined,
          observes,
          trackedActions: trackedActions.slice(),
        },
      };
    }
    case 'fence': {
      const { runId, endsAt, entries } = update.fence;
      const fence = { leaseDigest: update.digest, runId, endsAt: toTimestamp(endsAt), entries: entries.map(toEntry) };
      return { $case: 'fence', value: fence };
    }
    case 'renewed':
      return { $case: 'renewed', value: { leaseDigest: update.digest, endsAt: toTimestamp(update.endsAt) } };
    case 'ended':
      return {
        $case: 'ended',
        value: { leaseDigest: update.digest, reason: FENCE_REASON_TO_WIRE[update.reason] },
      };
    case 'closed': {
      const { resource, scope, reason } = update.closing;
      const value = { resource, scope: SCOPE_TO_WIRE[scope], reason: FENCE_REASON_TO_WIRE[reason] };
      return { $case: 'closed', value: { ...value, closed: update.isClosed } };
    }
    case 'reached':
      return { $case: 'reached', value: toPosition(update.position) };
    case 'mark': {
      const { ping, position, now } = update;
      const mark = { number: BigInt(ping), position: toPosition(position), databaseTime: toTimestamp(now) };
      return { $case: 'mark', value: mark };
    }
  }
}

function toEntry(entry: LeaseEntry): wire.FenceEntry {
  return {
    resource: entry.resource,
    scope: SCOPE_TO_WIRE[entry.scope],
    access: ACCESS_TO_WIRE[entry.access],
    actions: entry.actions.slice(),
    fencingToken: BigInt(entry.token),
    exclusive: entry.exclusive,
    implied: entry.impliedBy !== '',
    withheld: entry.observedRefusal !== null,
  };
}
