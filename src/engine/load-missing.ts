import type { Admission } from '../domain/admission.js';
import { type CheckName, checkId, type LoadedRecords, type NeedsLoad } from '../domain/decide/decision.js';
import { bindingId } from '../domain/state.js';
import type { Loaded, Store } from '../storage/store.js';

/** Adds missing records to what was loaded, one query per kind, and says at which revision the oldest was read. */
export async function loadMissing(
  store: Store,
  namespace: string,
  before: LoadedRecords,
  wanted: readonly NeedsLoad['wanted'][],
): Promise<{ records: LoadedRecords; revision: number }> {
  const leaseIds = distinct(wanted.flatMap(({ leaseId, leaseIds = [] }) => [leaseId ?? [], leaseIds].flat()));
  const runIds = distinct(wanted.flatMap(({ runId, runIds = [] }) => [runId ?? [], runIds].flat()));
  const keys = wanted.flatMap(({ key }) => key ?? []);
  const admissionIds = distinct(wanted.flatMap(({ admissionId }) => admissionId ?? []));
  const checks = wanted.flatMap(({ check }) => check ?? []);
  const [leases, runs, bindings, admissions] = await Promise.all([
    leaseIds.length === 0 ? null : store.loadLeases(namespace, leaseIds),
    runIds.length === 0 ? null : store.loadRuns(namespace, runIds),
    keys.length === 0 ? null : store.loadKeys(namespace, keys),
    admissionIds.length + checks.length === 0 ? null : store.loadAdmissions(namespace, admissionIds, checks),
  ]);
  const revisions = [leases, runs, bindings, admissions].flatMap((loaded) => loaded?.revision ?? []);
  if (revisions.length === 0) throw new Error('a look-up that asks for nothing');
  const keyIds = keys.map(({ scope, key }) => bindingId(scope, key));
  return {
    revision: Math.min(...revisions),
    records: {
      leases: withLoaded(before.leases, leaseIds, leases, (lease) => lease.leaseId),
      runs: withLoaded(before.runs, runIds, runs, (run) => run.runId),
      keys: withLoaded(before.keys, keyIds, bindings, ({ scope, key }) => bindingId(scope, key)),
      admissions: withLoaded(before.admissions, admissionIds, admissions, ({ admissionId }) => admissionId),
      checks: withChecks(before.checks, checks, admissions?.records ?? []),
    },
  };
}

function withChecks(
  before: LoadedRecords['checks'],
  asked: readonly CheckName[],
  loaded: readonly Admission[],
): LoadedRecords['checks'] {
  if (asked.length === 0) return before;
  const after = new Map(before);
  for (const check of asked) {
    const id = checkId(check);
    const found = loaded.filter((admission) => checkId(admission) === id);
    after.set(
      id,
      found.map(({ admissionId }) => admissionId),
    );
  }
  return after;
}

function distinct(ids: readonly string[]): string[] {
  return [...new Set(ids)];
}

/** What was asked for and is not there is known to be missing: null. */
function withLoaded<T>(
  before: ReadonlyMap<string, T | null>,
  asked: readonly string[],
  loaded: Loaded<T> | null,
  idOf: (record: T) => string,
): ReadonlyMap<string, T | null> {
  if (loaded === null) return before;
  const after = new Map(before);
  for (const id of asked) after.set(id, null);
  for (const record of loaded.records) after.set(idOf(record), record);
  return after;
}
