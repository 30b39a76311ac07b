import type { Micros } from './time.js';

/** What a target says became of a write. `failed`: nothing was changed. `unknown`: it cannot tell, and nobody may assume. */
export type WriteResult = 'succeeded' | 'failed' | 'unknown';

/** What is known of a write for good. */
export interface KnownOutcome {
  readonly result: 'succeeded' | 'failed';
  readonly at: Micros;
  /** The target that reported it, or the operator that settled it. */
  readonly by: string;
  readonly settled: boolean;
  /** Of the resource after the write; null: not told. */
  readonly newVersion: string | null;
}

/**
 * A tracked write that a check let in (R4, A1): open until somebody says what became of it. Immutable: a change makes a
 * new record.
 */
export interface Admission {
  readonly admissionId: string;
  readonly leaseId: string;
  readonly runId: string;
  /** Its path. */
  readonly resource: string;
  readonly action: string;
  readonly token: number;
  /** Of the check; with lease and target it is what a repeated check is known by. */
  readonly requestId: string;
  readonly observedVersion: string | null;
  /** The principal that asked, and that is expected to report. */
  readonly target: string;
  readonly admittedAt: Micros;
  /** The lease ended at this time and the write was open: nobody is granted the resource. Null: the lease lives. */
  readonly inDoubtSince: Micros | null;
  /** Its target has said that it does not know. */
  readonly unsure: boolean;
  /** Null: open. */
  readonly outcome: KnownOutcome | null;
}

export function isOpen(admission: Admission): boolean {
  return admission.outcome === null;
}

/** Whether its resource is kept from everybody until the outcome is known. */
export function isInDoubt(admission: Admission): boolean {
  return admission.outcome === null && admission.inDoubtSince !== null;
}

/** What one write of a report says. */
export interface ReportedWrite {
  /** Empty: no check left an admission for it, as its action is not tracked. */
  readonly admissionId: string;
  readonly resource: string;
  readonly action: string;
  readonly result: WriteResult;
  readonly observedVersion: string | null;
  readonly newVersion: string | null;
  /** As far as the target knows them (W6). */
  readonly changedFields: readonly string[];
  /** Another outcome was known before: this is recorded for people, and changes nothing. */
  readonly contradicts: boolean;
}
