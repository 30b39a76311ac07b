import type { Micros } from '../../../src/domain/time.js';
import { covers, type OracleEntry } from './entry.js';

export interface OracleLease {
  readonly runId: string;
  readonly live: boolean;
  readonly entries: readonly (OracleEntry & { readonly actions: readonly string[]; readonly token: Micros })[];
}

/** Whether a target may accept the write: only what the lease covers, only for its run, only with its token (P4). */
export function mayWrite(
  lease: OracleLease | undefined,
  presenterRunId: string,
  write: {
    readonly resource: string;
    readonly action: string;
    readonly token: number;
    readonly observedVersion: string | null;
  },
): boolean {
  if (lease === undefined || !lease.live) return false;
  if (presenterRunId !== '' && presenterRunId !== lease.runId) return false;
  return lease.entries.some(
    (entry) =>
      entry.access === 'write' &&
      entry.observedRefusal === null &&
      entry.suspended !== true &&
      covers(entry, write.resource) &&
      entry.actions.includes(write.action) &&
      entry.token === write.token &&
      (entry.exclusive || write.observedVersion !== null),
  );
}
