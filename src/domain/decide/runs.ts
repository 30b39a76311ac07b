import { beyondAllowances, type Ceiling } from '../ceiling.js';
import { pathNamed } from '../conflict-map/index.js';
import type { Allowance } from '../entry.js';
import { Fault, invalidArgument, type Violation } from '../fault.js';
import { principalScope, runScope } from '../key-binding.js';
import { effectiveAt } from '../lease.js';
import { hasEnded, isOver, type Run } from '../run.js';
import { delayedLeases, descendantsOf, liveLeasesOf, openWritesOf } from '../state.js';
import { type Micros, SECOND } from '../time.js';
import type { Decision } from './decision.js';
import { changeRunStates, type RunChange } from './ending.js';
import { keyReused } from './idempotency.js';
import { ownRun, runNotFound } from './run-guard.js';

export interface CreateRunCommand {
  readonly principal: string;
  readonly freshRunId: string;
  readonly purpose: string;
  readonly goalRevision: string;
  readonly initiator: string;
  readonly initiatorVerified: boolean;
  /** Empty: none. */
  readonly parentRunId: string;
  readonly ceiling: Ceiling | null;
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
  const parent = parentOf(decision, command);
  refuseBeyond(decision, command, parent);
  const run: Run = {
    runId: command.freshRunId,
    idempotencyKey: command.idempotencyKey,
    state: 'active',
    stateReason: '',
    blockCause: null,
    endsAs: null,
    purpose: command.purpose,
    goalRevision: command.goalRevision,
    initiator: command.initiator,
    initiatorVerified: command.initiatorVerified,
    principal: command.principal,
    parentRunId: command.parentRunId,
    maxTtl: least(command.ceiling?.maxTtl ?? null, parent?.maxTtl ?? null),
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

const MAX_DEPTH = 8;

/** A child run is bound to a live run of the same principal (R1); a foreign parent and an unknown one look the same. */
function parentOf(decision: Decision, command: CreateRunCommand): Run | null {
  if (command.parentRunId === '') return null;
  const parent = ownRun(decision, command.parentRunId, command.principal);
  if (isOver(parent) || parent.authorityEndsAt <= decision.now) {
    throw new Fault(
      'failed_precondition',
      'RUN_ENDED',
      `The parent run is ${isOver(parent) ? parent.state : 'past the end of its authority'}; it can have no new child.`,
      { metadata: { run_id: parent.runId, state: parent.state } },
    );
  }
  // What a parent relies on is decided on the database clock, as its leases are.
  decision.relyOnFuture(parent.authorityEndsAt);
  let depth = 1;
  for (let above = parent; above.parentRunId !== ''; depth += 1) {
    const next = decision.run(above.parentRunId);
    if (next === undefined) break;
    above = next;
  }
  if (depth >= MAX_DEPTH)
    throw invalidArgument([{ field: 'parent_run_id', description: `runs may be nested at most ${MAX_DEPTH} deep` }]);
  return parent;
}

/** Everything in which the contract goes too far, at once. */
function refuseBeyond(decision: Decision, command: CreateRunCommand, parent: Run | null): void {
  const { ceiling, authorityEndsAt: end } = command;
  if (end <= decision.now) {
    throw invalidArgument([{ field: 'authority_ends_at', description: 'must be in the future of the database clock' }]);
  }
  const violations: Violation[] = [];
  const latest = (limit: Micros | null, whose: string): void => {
    if (limit === null || end <= limit) return;
    const left = Math.max(0, Math.floor((limit - decision.now) / SECOND));
    violations.push({ field: 'authority_ends_at', description: `${whose} allows at most ${left} s from now` });
  };
  if (ceiling !== null) {
    if (ceiling.allowed !== null)
      violations.push(...beyondAllowances(command.allowed, ceiling.allowed, 'your ceiling'));
    latest(ceiling.latestEnd, 'your ceiling');
    latest(ceiling.maxAuthority === null ? null : decision.now + ceiling.maxAuthority, 'your ceiling');
  }
  if (parent !== null) {
    violations.push(...beyondAllowances(command.allowed, parent.allowed, 'the parent run'));
    latest(parent.authorityEndsAt, 'the parent run');
  }
  if (violations.length > 0) {
    const text = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
    throw new Fault('permission_denied', 'BEYOND_CEILING', text, { violations });
  }
  const { runs } = decision.state.usage.get(command.principal) ?? { runs: 0 };
  if (ceiling?.maxLiveRuns != null && runs >= ceiling.maxLiveRuns) {
    throw new Fault(
      'resource_exhausted',
      'RUN_LIMIT',
      `Your ceiling allows ${ceiling.maxLiveRuns} runs at a time, and as many have not ended; end one first.`,
      { metadata: { max_live_runs: String(ceiling.maxLiveRuns) } },
    );
  }
}

function least(a: Micros | null, b: Micros | null): Micros | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
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
  if (isOver(run)) {
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
  const { state, reason } = command;
  const children = ends ? [childrenEnd(decision, [run], `The parent run has ${state}.`)] : [];
  const change: RunChange =
    state === 'finished' || state === 'failed'
      ? { runs: [run], state, reason, endReason: 'run_ended' }
      : { runs: [run], state, reason, endReason: null };
  changeRunStates(decision, [...children, change], command.requestIds);
  return { effectiveAt: ends ? inForce(decision, decision.now, [run.runId]) : null };
}

/**
 * When the end of runs, and of the runs below them, is in force everywhere: at once, but what they held of view and
 * local kinds after its lock delay (P3).
 */
function inForce(decision: Decision, endedAt: Micros, runIds: Iterable<string>): Micros {
  const ended = new Set(runIds);
  let latest = endedAt;
  let open = [...delayedLeases(decision.state)].map((lease) => ({ runId: lease.runId, until: effectiveAt(lease) }));
  while (open.length > 0) {
    for (const { runId, until } of open) if (ended.has(runId)) latest = Math.max(latest, until);
    const above = open.filter(({ until }) => until > latest);
    decision.needRuns(above.map(({ runId }) => runId));
    open = above.map(({ runId, until }) => ({ runId: decision.run(runId)?.parentRunId ?? '', until }));
    open = open.filter(({ runId }) => runId !== '');
  }
  return latest;
}

export interface StopRunCommand {
  /** Null: an operator's call, which may stop any run. */
  readonly principal: string | null;
  readonly runId: string;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/** StopRun: nothing is allowed or granted once it has returned (P3, F14), also while outcomes are open (R4); idempotent. */
export function decideStopRun(decision: Decision, command: StopRunCommand): { effectiveAt: Micros } {
  const run =
    command.principal === null ? decision.run(command.runId) : ownRun(decision, command.runId, command.principal);
  if (run === undefined) throw runNotFound(command.runId);
  if (!isOver(run)) stop(decision, [run], command.reason, command.requestIds);
  return { effectiveAt: inForce(decision, run.endedAt ?? decision.now, [run.runId]) };
}

function stop(decision: Decision, runs: readonly Run[], reason: string, requestIds: readonly string[]): void {
  // Without the reason: to erase the texts of the one run must be enough (A3).
  const children = childrenEnd(decision, runs, 'The parent run was stopped; `writ run get` of that one tells why.');
  changeRunStates(decision, [children, { runs, state: 'stopped', reason, endReason: 'run_stopped' }], requestIds);
}

/** Ending a parent ends its children first (design: delegation). */
function childrenEnd(decision: Decision, parents: readonly Run[], reason: string): RunChange {
  const ending = new Set(parents.map((run) => run.runId));
  const children = parents.flatMap((run) => descendantsOf(decision.state, run.runId));
  const live = children.filter((run) => !ending.has(run.runId) && !isOver(run));
  const others = new Map(live.map((run) => [run.runId, run]));
  return { runs: [...others.values()], state: 'stopped', reason, endReason: 'parent_ended' };
}

export interface StopRunsCommand {
  readonly caller: string;
  /** Empty: of any principal. */
  readonly principal: string;
  /** A path or an alias. Empty: whatever they hold. */
  readonly resource: string;
  readonly reason: string;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
}

/** StopRuns: all runs that match, in one append. A repeated call stops none, and answers as the first. */
export function decideStopRuns(
  decision: Decision,
  command: StopRunsCommand,
): { runIds: string[]; effectiveAt: Micros } {
  const scope = principalScope(command.caller);
  const binding = decision.key(scope, command.idempotencyKey);
  if (binding !== undefined) {
    if (binding.use !== 'stop_runs' || binding.fingerprint !== command.fingerprint)
      throw keyReused(command.idempotencyKey);
    const runIds = [...(binding.stopped ?? [])];
    decision.needRuns(runIds);
    return { runIds, effectiveAt: inForce(decision, binding.boundAt, runIds) };
  }
  const { map } = decision.state;
  const resource = command.resource === '' ? '' : pathNamed(map, 'resource', command.resource);
  const wanted = { principal: command.principal, resource };
  const matching = [...decision.state.runs.values()].filter((run) => !hasEnded(run) && matches(decision, run, wanted));
  const runIds = matching.map((run) => run.runId);
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
        stopped: runIds,
      },
    },
    { requestIds: command.requestIds },
  );
  stop(
    decision,
    matching.filter((run) => !isOver(run)),
    command.reason,
    command.requestIds,
  );
  return { runIds, effectiveAt: inForce(decision, decision.now, runIds) };
}

function matches(decision: Decision, run: Run, wanted: Pick<StopRunsCommand, 'principal' | 'resource'>): boolean {
  if (wanted.principal !== '' && run.principal !== wanted.principal) return false;
  if (wanted.resource === '') return true;
  for (const lease of liveLeasesOf(decision.state, run.runId)) {
    if (lease.entries.some((entry) => touches(entry.resource, wanted.resource))) return true;
  }
  return openWritesOf(decision.state, run.runId).some(({ resource }) => touches(resource, wanted.resource));
}

/** Whether one of two resources is at, above or below the other. */
export function touches(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
