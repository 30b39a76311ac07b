import type { Admission } from '../../domain/admission.js';
import type { Allowance } from '../../domain/entry.js';
import type { Run, RunState } from '../../domain/run.js';
import type { Micros } from '../../domain/time.js';
import type { At, CallContext, Page, Paged } from './calls.js';

/** A run with what is derived from its leases. */
export interface RunView {
  readonly run: Run;
  readonly liveLeases: number;
  readonly waitingRequests: number;
  readonly mayWrite: boolean;
  /** Of it and of runs below it: tracked writes whose outcome is not known. */
  readonly openWrites: readonly Admission[];
}

export interface CreateRunInput {
  readonly purpose: string;
  readonly goalRevision: string;
  readonly initiator: string;
  /** Of the person; empty: the initiator is not verified. */
  readonly initiatorToken: string;
  /** Empty: none. */
  readonly parentRunId: string;
  readonly allowed: readonly Allowance[];
  readonly authorityEndsAt: Micros;
  readonly escalation: readonly string[];
  readonly idempotencyKey: string;
}

/** Runs and their contracts. */
export interface RunApi {
  createRun(context: CallContext, input: CreateRunInput): Promise<At<RunView>>;
  getRun(context: CallContext, input: { runId: string }): Promise<At<RunView>>;
  listRuns(context: CallContext, input: { states: readonly RunState[]; page: Page }): Promise<At<Paged<RunView>>>;
  updateRunState(
    context: CallContext,
    input: { runId: string; state: RunState; reason: string; idempotencyKey: string },
  ): Promise<At<{ run: RunView; effectiveAt: Micros | null }>>;
  stopRun(
    context: CallContext,
    input: { runId: string; reason: string },
  ): Promise<At<{ effectiveAt: Micros; run: RunView }>>;
  stopRuns(
    context: CallContext,
    input: { principal: string; resource: string; all: boolean; reason: string; idempotencyKey: string },
  ): Promise<At<{ effectiveAt: Micros; runs: readonly RunView[] }>>;
}
