import type { Allowance } from '../entry.js';
import { Fault } from '../fault.js';
import { principalScope, runScope } from '../key-binding.js';
import { effectiveAt } from '../lease.js';
import { hasEnded, type Run } from '../run.js';
import { delayedLeases, liveLeasesOf } from '../state.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { changeRunState } from './ending.js';
import { keyReused } from './idempotency.js';
import { ownRun, runNotFound } from './run-guard.js';

export interface CreateRunCommand {
  readonly principal: string;
  readonly freshRunId: string;
  readonly purpose: string;
  readonly goalRevision: string;
  readonly initiator: string;
  readonly allowed: readonly Allowance[];
  readonly authorityEndsAt: Micros;
  readonly escalation: readonly string[];
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
}

/** CreateRun: the same key of the same principal, the same run. */
export function decideCreateRun(decision: Decision, command: CreateRunCommand): { runId: string } {
  const binding = decision.key(principalScope(command.principal), command.idempotencyKey);
  if (binding !== undefined) {
    if (binding.use !== 'create_run' || binding.fingerprint !== command.fingerprint)
      throw keyReused(command.idempotencyKey);
    return { runId: binding.runId };
  }
  if (command.authorityEndsAt <= decision.now) {
    throw new Fault(
      'invalid_argument',
      'INVALID_ARGUMENT',
      'authority_ends_at: must be in the future of the database clock',
      {
        violations: [{ field: 'authority_ends_at', description: 'must be in the future of the database clock' }],
      },
    );
  }
  const run: Run = {
    runId: command.freshRunId,
    idempotencyKey: command.idempotencyKey,
    state: 'active',
    stateReason: '',
    blockCause: null,
    purpose: command.purpose,
    goalRevision: command.goalRevision,
    initiator: command.initiator,
    principal: command.principal,
    allowed: command.allowed,
    authorityEndsAt: command.authorityEndsAt,
    escalation: command.escalation,
    createdAt: decision.now,
    endedAt: null,
  };
  decision.emit(
    { kind: 'run_created', run, fingerprint: command.fingerprint },
    { runId: run.runId, requestIds: command.requestIds },
  );
  return { runId: run.runId };
}

export interface UpdateRunStateCommand {
  readonly principal: string;
  /** Operators may change any run, and lift a block after lost history. */
  readonly asOperator: boolean;
  readonly runId: string;
  readonly state: 'active' | 'waiting_for_input' | 'blocked' | 'finished' | 'failed';
  readonly reason: string;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
}

/** UpdateRunState: what the run says of itself; an end ends all that it holds, and says when that is in force. */
export function decideUpdateRunState(
  decision: Decision,
  command: UpdateRunStateCommand,
): { effectiveAt: Micros | null } {
  const run = command.asOperator ? decision.run(command.runId) : ownRun(decision, command.runId, command.principal);
  if (run === undefined) throw runNotFound(command.runId);
  const scope = runScope(run.runId);
  const ends = command.state === 'finished' || command.state === 'failed';
  const binding = decision.key(scope, command.idempotencyKey);
  if (binding !== undefined) {
    if (binding.use !== 'update_run_state' || binding.fingerprint !== command.fingerprint)
      throw keyReused(command.idempotencyKey);
    return { effectiveAt: ends ? inForce(decision, run.endedAt ?? decision.now, [run.runId]) : null };
  }
  if (hasEnded(run) || run.state === 'stopping') {
    throw new Fault(
      'failed_precondition',
      'RUN_ENDED',
      `The run is ${run.state}; its state cannot be changed any more.`,
      { metadata: { run_id: run.runId, state: run.state } },
    );
  }
  if (
    run.blockCause === 'database_changed' &&
    !command.asOperator &&
    command.state !== 'finished' &&
    command.state !== 'failed'
  ) {
    throw new Fault(
      'permission_denied',
      'RUN_BLOCKED',
      'The run was blocked because the database lost history; an operator must resume it.',
      { metadata: { run_id: run.runId } },
    );
  }
  decision.emit(
    {
      kind: 'key_bound',
      binding: {
        scope,
        key: command.idempotencyKey,
        use: 'update_run_state',
        fingerprint: command.fingerprint,
        runId: run.runId,
        leaseId: '',
        boundAt: decision.now,
      },
    },
    { runId: run.runId, requestIds: command.requestIds },
  );
  changeRunState(decision, [run], command.state, command.reason, ends ? 'run_ended' : null, command.requestIds);
  return { effectiveAt: ends ? inForce(decision, decision.now, [run.runId]) : null };
}

/** When the end of runs is in force everywhere: at once, but what they held of local kinds after its lock delay (P3). */
function inForce(decision: Decision, endedAt: Micros, runIds: Iterable<string>): Micros {
  const ended = new Set(runIds);
  let latest = endedAt;
  for (const lease of delayedLeases(decision.state))
    if (ended.has(lease.runId)) latest = Math.max(latest, effectiveAt(lease));
  return latest;
}

export interface StopRunCommand {
  /** Null: an operator's call, which may stop any run. */
  readonly principal: string | null;
  readonly runId: string;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/** StopRun: nothing is allowed or granted once it has returned (P3, F14); idempotent. */
export function decideStopRun(decision: Decision, command: StopRunCommand): { effectiveAt: Micros } {
  const run =
    command.principal === null ? decision.run(command.runId) : ownRun(decision, command.runId, command.principal);
  if (run === undefined) throw runNotFound(command.runId);
  if (!hasEnded(run)) stop(decision, [run], command.reason, command.requestIds);
  return { effectiveAt: inForce(decision, run.endedAt ?? decision.now, [run.runId]) };
}

function stop(decision: Decision, runs: readonly Run[], reason: string, requestIds: readonly string[]): void {
  changeRunState(decision, runs, 'stopped', reason, 'run_stopped', requestIds);
}

export interface StopRunsCommand {
  readonly caller: string;
  /** Empty: of any principal. */
  readonly principal: string;
  /** Empty: whatever they hold. */
  readonly resource: string;
  readonly reason: string;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
}

/** StopRuns: all runs that match, in one append. A repeated call stops none. */
export function decideStopRuns(
  decision: Decision,
  command: StopRunsCommand,
): { runIds: string[]; effectiveAt: Micros } {
  const scope = principalScope(command.caller);
  const binding = decision.key(scope, command.idempotencyKey);
  if (binding !== undefined) {
    if (binding.use !== 'stop_runs' || binding.fingerprint !== command.fingerprint)
      throw keyReused(command.idempotencyKey);
    const stopped = [...decision.state.runs.values()].filter((run) => run.endedAt === binding.boundAt);
    return { runIds: [], effectiveAt: inForce(decision, binding.boundAt, idsOf(stopped)) };
  }
  decision.emit(
    {
      kind: 'key_bound',
      binding: {
        scope,
        key: command.idempotencyKey,
        use: 'stop_runs',
        fingerprint: command.fingerprint,
        runId: '',
        leaseId: '',
        boundAt: decision.now,
      },
    },
    { requestIds: command.requestIds },
  );
  const matching = [...decision.state.runs.values()].filter((run) => !hasEnded(run) && matches(decision, run, command));
  stop(decision, matching, command.reason, command.requestIds);
  const runIds = idsOf(matching);
  return { runIds, effectiveAt: inForce(decision, decision.now, runIds) };
}

const idsOf = (runs: readonly Run[]): string[] => runs.map((run) => run.runId);

function matches(decision: Decision, run: Run, command: StopRunsCommand): boolean {
  if (command.principal !== '' && run.principal !== command.principal) return false;
  if (command.resource === '') return true;
  for (const lease of liveLeasesOf(decision.state, run.runId)) {
    if (lease.entries.some((entry) => touches(entry.resource, command.resource))) return true;
  }
  return false;
}

/** Whether one of two resources is at, above or below the other. */
export function touches(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
