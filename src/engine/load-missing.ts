import type { LoadedRecords, NeedsLoad } from '../domain/decide/decision.js';
import { bindingId } from '../domain/state.js';
import type { Store } from '../storage/store.js';

/** Adds one missing record to what was loaded, and says at which revision the projections were read. */
export async function loadMissing(
  store: Store,
  namespace: string,
  before: LoadedRecords,
  wanted: NeedsLoad['wanted'],
): Promise<{ records: LoadedRecords; revision: number }> {
  if (wanted.leaseId !== undefined) {
    const { revision, records } = await store.loadLeases(namespace, [wanted.leaseId]);
    return { revision, records: { ...before, leases: new Map(before.leases).set(wanted.leaseId, records[0] ?? null) } };
  }
  if (wanted.runId !== undefined) {
    const { revision, records } = await store.loadRuns(namespace, [wanted.runId]);
    return { revision, records: { ...before, runs: new Map(before.runs).set(wanted.runId, records[0] ?? null) } };
  }
  if (wanted.key !== undefined) {
    const { revision, records } = await store.loadKeys(namespace, [wanted.key]);
    const id = bindingId(wanted.key.scope, wanted.key.key);
    return { revision, records: { ...before, keys: new Map(before.keys).set(id, records[0] ?? null) } };
  }
  throw new Error('a look-up that asks for nothing');
}
