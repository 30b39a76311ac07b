import type { Admission } from './admission.js';
import { expandForQuestion } from './conflict-map/expand.js';
import { type ConflictMap, kindOf } from './conflict-map/index.js';
import type { ExpandedEntry } from './entry.js';
import type { Lease } from './lease.js';
import { type Lock, leafKey, locksOf } from './locks.js';
import { INCOMPATIBLE, type Mode } from './modes.js';
import type { Blocker } from './refusal.js';
import type { State } from './state.js';

/**
 * A write in doubt keeps its resource from everybody, its own run too, with all that the map says such a write touches:
 * whatever it may still do, nobody else is in its way, and nobody builds on what it may have done (design: in doubt).
 * Its locks follow from the resource and the map alone.
 */
function reservedBy(map: ConflictMap, resource: string): { entries: readonly ExpandedEntry[]; locks: Lock[] } {
  const asked = { resource, access: 'write', scope: 'exact', actions: [], observedVersion: null } as const;
  const { writeSet } = expandForQuestion(map, { entries: [asked], task: null, resourceSet: null });
  const entries = writeSet.entries.map((entry) => (entry.impliedBy === '' ? { ...entry, exclusive: true } : entry));
  return { entries, locks: locksOf(entries, writeSet.ruleLocks) };
}

export function locksOfDoubt(map: ConflictMap, { resource }: Admission): Lock[] {
  return reservedBy(map, resource).locks;
}

/** A write in doubt that a request would meet. */
export interface Doubt {
  readonly admission: Admission;
  /** The requested lock that meets it. */
  readonly lock: Lock;
  readonly theirMode: Mode;
}

/** Writes in doubt that keep any of these locks from everybody, each once. */
export function* doubtsInTheWay(state: State, locks: readonly Lock[]): Iterable<Doubt> {
  if (state.inDoubt === 0) return;
  const seen = new Set<string>();
  for (const lock of locks) {
    for (const theirMode of INCOMPATIBLE[lock.mode]) {
      // In this table holders are admissions.
      for (const { leaseId: admissionId } of state.doubted[theirMode].holders(lock.key)) {
        if (seen.has(admissionId)) continue;
        seen.add(admissionId);
        const admission = state.admissions.get(admissionId);
        if (admission !== undefined) yield { admission, lock, theirMode };
      }
    }
  }
}

/** Whether a write to this very resource is in doubt, which its holder, if any, was not granted in spite of. */
export function isResourceInDoubt(state: State, resource: string, holder?: Lease): boolean {
  if (state.inDoubt === 0) return false;
  const acceptedUpTo = holder?.takeOver?.acceptsOverlap === true ? (holder.grantedAt ?? 0) : 0;
  for (const { leaseId: admissionId } of state.doubted.X.holders(leafKey(resource))) {
    const admission = state.admissions.get(admissionId);
    if (admission?.resource === resource && (admission.inDoubtSince ?? 0) > acceptedUpTo) return true;
  }
  return false;
}

/** The write in doubt as a refusal names it. */
export function blockerOfDoubt(
  map: ConflictMap,
  { admission, lock, theirMode }: Doubt,
  requested: readonly { readonly resource: string; readonly impliedBy: string }[],
): Blocker {
  const { entries, locks } = reservedBy(map, admission.resource);
  const theirs = locks.find(({ key, mode }) => key === lock.key && mode === theirMode);
  const entry = theirs === undefined ? undefined : entries[theirs.entry];
  const mine = requested[lock.entry];
  return {
    leaseId: admission.leaseId,
    runId: admission.runId,
    purpose: '',
    resource: entry?.resource ?? admission.resource,
    access: entry?.access ?? 'write',
    scope: entry?.scope ?? 'exact',
    expiresAt: null,
    lockDelayUntil: null,
    inDoubtSince: admission.inDoubtSince,
    waiting: false,
    rule: lock.rule || entry?.impliedBy || mine?.impliedBy || '',
    resolver: kindOf(map, admission.resource)?.actions.get(admission.action)?.resolver ?? '',
    requestedResource: mine?.resource ?? '',
  };
}
