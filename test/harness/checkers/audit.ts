import { decodeEvent } from '../../../src/engine/event-codec.js';
import { GENESIS_HASH, hashEvent } from '../../../src/engine/hash-chain.js';
import type { EventRecord } from '../../../src/storage/store.js';
import { Auditor } from '../../support/oracle/auditor.js';
import { Violation as BrokenPromise } from '../../support/oracle/violation.js';
import { universeOf } from '../../support/oracle/write-sets.js';
import type { Checker, History, Violation } from '../history.js';

/** Of every coordinator that the harness starts (WRIT_MAX_CLOCK_SKEW). */
const MAX_SKEW = 1_000_000;
const CREDENTIALS = { life: 60_000_000, tolerance: 5_000_000, skew: MAX_SKEW };

const audited = new WeakMap<readonly EventRecord[], Violation[]>();

/**
 * What the auditor of the simulation says of the log, if it is about this promise: it folds the events by rules of its
 * own, and stops at the first that breaks a promise.
 */
export function auditOf(promise: string): Checker {
  return ({ log, losses }) => {
    const found = audited.get(log) ?? audit(log, losses.length > 0);
    audited.set(log, found);
    return found.filter((violation) => violation.promise === promise);
  };
}

/** What breaks other promises than the ten: requirements. */
export const auditRest: Checker = (history: History) =>
  ['R4', 'C1a', 'C3', 'C5', 'P11', 'log'].flatMap((id) => auditOf(id)(history));

function audit(log: readonly EventRecord[], mayLose: boolean): Violation[] {
  const universe = universeOf([...new Set(log.flatMap(({ resources }) => resources))]);
  const auditor = new Auditor(
    universe,
    { genesisHash: GENESIS_HASH, hashOf: hashEvent, eventOf: decodeEvent },
    MAX_SKEW,
    CREDENTIALS,
    mayLose,
  );
  for (const batch of batches(log)) {
    try {
      auditor.appended(batch, Math.max(...batch.map(({ time }) => time)));
    } catch (error) {
      return [violationOf(error, batch)];
    }
  }
  return [];
}

/** Events of one append stand together. */
function batches(log: readonly EventRecord[]): EventRecord[][] {
  const all: EventRecord[][] = [];
  for (const record of log) {
    const last = all.at(-1);
    if (last?.[0]?.batchId === record.batchId) last.push(record);
    else all.push([record]);
  }
  return all;
}

function violationOf(error: unknown, batch: readonly EventRecord[]): Violation {
  const message = error instanceof Error ? error.message : String(error);
  const named = error instanceof BrokenPromise ? /^([A-Z]\d+[a-z]?): (.*)$/s.exec(message) : null;
  const [, promise = 'log', what = message] = named ?? [];
  return {
    promise,
    what,
    calls: [],
    revisions: batch.map(({ revision }) => revision),
    about: [...new Set(batch.flatMap(({ leaseId, runId }) => [leaseId, runId]))].filter((id) => id !== ''),
  };
}
