import { BaseHolderIndex, type Holder, type HolderIndex, OverlayHolderIndex } from './holder-index.js';
import type { Lease, LeaseEntry } from './lease.js';
import { locksOf, resourceLocks } from './locks.js';
import { compatible } from './modes.js';
import { BaseTable, OverlayTable, type Table } from './table.js';
import type { Micros } from './time.js';

/**
 * What runs read without a lock (design: access READ), and when others were last granted a write on it. A READ is noted
 * under the keys that a stable read would lock, in an index of its own that stands in nobody's way; a grant of a write
 * that would meet it leaves its time there. So what a renewal has to look at is bounded by the lease's own entries,
 * however many leases read or write, and where nobody reads a grant costs nothing.
 *
 * Only memory: a replica that starts knows of no grant before, and says so (`knownSince`).
 */
export interface Inputs {
  readonly readers: Readonly<Record<ReadMode, HolderIndex>>;
  /** By mode and key of a reader; gone with the last reader of that key. */
  readonly writes: Table<LastWrites>;
  /** Active leases with a READ entry. */
  readingLeases: number;
  /** Grants up to this time may have been forgotten. */
  knownSince: Micros;
}

/** The modes that a stable read takes on its own keys and on those above. */
type ReadMode = 'S' | 'IS';
const READ_MODES: readonly ReadMode[] = ['S', 'IS'];

/** The last grant of a write, and the last one to any other run than that. 0: there was none. */
interface LastWrites {
  readonly runId: string;
  readonly at: Micros;
  readonly toOthersAt: Micros;
}

export interface InputsOverlay extends Inputs {
  commit(): void;
  rebase(onto: Inputs): void;
}

export function emptyInputs(): Inputs {
  const readers = { S: new BaseHolderIndex(), IS: new BaseHolderIndex() };
  return { readers, writes: new BaseTable(), readingLeases: 0, knownSince: 0 };
}

export function overlayInputs(inputs: Inputs): InputsOverlay {
  let base = inputs;
  const readers = { S: new OverlayHolderIndex(base.readers.S), IS: new OverlayHolderIndex(base.readers.IS) };
  const writes = new OverlayTable(base.writes);
  return {
    readers,
    writes,
    readingLeases: base.readingLeases,
    knownSince: base.knownSince,
    commit() {
      base.readingLeases = this.readingLeases;
      base.knownSince = this.knownSince;
      for (const part of [readers.S, readers.IS, writes]) part.commit();
    },
    rebase(onto) {
      base = onto;
      for (const mode of READ_MODES) readers[mode].rebase(onto.readers[mode]);
      writes.rebase(onto.writes);
    },
  };
}

const isRead = (entry: LeaseEntry): boolean => entry.access === 'read';

/** Takes note of what an active lease reads, from its grant on; `before` is what it was, when more was added to it. */
export function noteReads(inputs: Inputs, lease: Lease, before: Lease | null = null): void {
  if (!lease.entries.some(isRead)) return;
  if (before === null || !before.entries.some(isRead)) inputs.readingLeases += 1;
  const holder = { leaseId: lease.leaseId, runId: lease.runId, order: 0 };
  for (const { key, mode } of readKeys(lease)) inputs.readers[mode].add(key, holder);
}

/** Takes note of what an active lease reads after a change of its write set, and forgets what it reads no more. */
export function changeReads(inputs: Inputs, before: Lease, after: Lease): void {
  noteReads(inputs, after, before);
  if (!before.entries.some(isRead)) return;
  if (!after.entries.some(isRead)) inputs.readingLeases -= 1;
  const still = new Set([...readKeys(after)].map(({ key, mode }) => mode + key));
  for (const { key, mode } of readKeys(before)) if (!still.has(mode + key)) forgetRead(inputs, after, key, mode);
}

/** Forgets it at the lease's end, with the grants that nobody else would be told of. */
export function forgetReads(inputs: Inputs, lease: Lease): void {
  if (!lease.entries.some(isRead)) return;
  inputs.readingLeases -= 1;
  for (const { key, mode } of readKeys(lease)) forgetRead(inputs, lease, key, mode);
}

function forgetRead(inputs: Inputs, { leaseId }: Lease, key: string, mode: ReadMode): void {
  inputs.readers[mode].remove(key, leaseId);
  if (!isSomebody(inputs.readers[mode].holders(key))) inputs.writes.delete(mode + key);
}

/** Takes note of the writes that a lease was granted at this time, where somebody reads what they meet. */
export function noteWrites(inputs: Inputs, lease: Lease, at: Micros): void {
  if (inputs.readingLeases === 0) return;
  const granted = lease.entries.filter((entry) => entry.access === 'write' && entry.token === at);
  for (const { key, mode } of locksOf(granted, [])) {
    for (const readMode of READ_MODES) {
      if (compatible(readMode, mode) || !isSomebody(inputs.readers[readMode].holders(key))) continue;
      const before = inputs.writes.get(readMode + key);
      const toOthersAt = before === undefined ? 0 : before.runId === lease.runId ? before.toOthersAt : before.at;
      inputs.writes.set(readMode + key, { runId: lease.runId, at, toOthersAt });
    }
  }
}

/** Who reads what a lease was granted a write on. */
export function* readersOf(inputs: Inputs, lease: Lease): Iterable<Holder> {
  if (inputs.readingLeases === 0) return;
  const granted = lease.entries.filter((entry) => entry.access === 'write' && entry.token > 0);
  for (const { key, mode } of locksOf(granted, []))
    for (const readMode of READ_MODES) if (!compatible(readMode, mode)) yield* inputs.readers[readMode].holders(key);
}

/** What an active lease reads and another run was granted a write on since the lease's grant, with the last time. */
export function changedInputs(inputs: Inputs, lease: Lease): { resource: string; changedAt: Micros }[] {
  const changed: { resource: string; changedAt: Micros }[] = [];
  const since = lease.grantedAt ?? 0;
  const isUnknown = inputs.knownSince > 0 && since <= inputs.knownSince;
  for (const { resource, scope } of lease.entries.filter(isRead)) {
    let changedAt = isUnknown ? inputs.knownSince : since;
    for (const { key, mode } of resourceLocks(resource, scope, 'S')) {
      const last = inputs.writes.get(mode + key);
      if (last === undefined) continue;
      changedAt = Math.max(changedAt, last.runId === lease.runId ? last.toOthersAt : last.at);
    }
    if (isUnknown || changedAt > since) changed.push({ resource, changedAt });
  }
  return changed;
}

function* readKeys(lease: Lease): Iterable<{ readonly key: string; readonly mode: ReadMode }> {
  const taken = new Set<string>();
  for (const { resource, scope } of lease.entries.filter(isRead)) {
    for (const { key, mode } of resourceLocks(resource, scope, 'S')) {
      if (taken.has(mode + key)) continue;
      taken.add(mode + key);
      yield { key, mode: mode as ReadMode };
    }
  }
}

function isSomebody(holders: Iterable<unknown>): boolean {
  for (const _ of holders) return true;
  return false;
}
