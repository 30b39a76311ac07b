import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import {
  type At,
  type PlanState,
  PlanStore,
  type PlanView,
  type StepEffects,
  type StepState,
} from './ordered-change-store.js';
import { inTransaction } from './postgres-transaction.js';
import { ProblemError } from './problem-error.js';

/**
 * Changes of several resources (W5). They are not atomic, and are not called so: the intended state is recorded first,
 * steps are made in order, each only while what the one before has made is still so; when one fails, those before it are
 * undone in reverse, each only while what it made is still so.
 *
 * What is begun is recorded before it is begun, and what is done is recorded in the transaction that does it. After a
 * crash the record therefore says how far it got. Nothing is repeated by itself: `findInterrupted` shows it, and a person
 * decides whether to roll back or to say that it is settled.
 */

/** What a step is given. */
export interface StepContext<Input> {
  /** Of the step's own transaction, in which its result is recorded. READ COMMITTED. */
  readonly client: PoolClient;
  readonly planId: string;
  /** The intended state, as the plan was started with. */
  readonly input: Input;
  /** What the steps before have returned, by their names. */
  readonly results: Readonly<Record<string, unknown>>;
  /** Fires when the step has taken longer than it may. */
  readonly signal: AbortSignal;
}

/** The same, with what the step itself has returned. */
export interface MadeStepContext<Input> extends StepContext<Input> {
  /** What the step returned when it was made. */
  readonly result: unknown;
}

/** One change, of one resource. */
export interface OrderedStep<Input> {
  /** A letter, then letters, digits, `_`, `.` or `-`; at most 63. */
  readonly name: string;
  /**
   * `in_transaction`: whatever it changes, it changes through `client`; then a failure is certain to have changed nothing.
   * `elsewhere_too`: an error that is not a ProblemError leaves it in doubt.
   */
  readonly effects: StepEffects;
  /**
   * Makes the change, under a condition on the state that it expects. Returns what is needed to recognise it later, such
   * as the new version; JSON, no secrets. A ProblemError says that nothing was done.
   */
  run(context: StepContext<Input>): Promise<unknown>;
  /** Whether what it made is still so, by a look at the current state. Asked before the next step and before undoing. */
  holds(context: MadeStepContext<Input>): Promise<boolean>;
  /**
   * Undoes the change, again under a condition: `changed_since` when somebody else has changed it, who must not be undone
   * unseen. Or why it cannot be undone.
   */
  readonly undo:
    | ((context: MadeStepContext<Input>) => Promise<'undone' | 'changed_since'>)
    | { readonly cannot: string };
}

/** A change of several resources: its steps, in their order. */
export interface OrderedChange<Input> {
  /** Told in problems and with the plan. */
  readonly name: string;
  /** 1 to 64. */
  readonly steps: readonly OrderedStep<Input>[];
}

/** Bounds and places of plans. */
export interface OrderedChangesOptions {
  /** How long a step, or its undoing, may take; after it a plan that nobody holds counts as interrupted. Default 60,000; 1 to 86,400,000. */
  readonly stepTimeoutMs?: number;
  /** Default `writ_plans`. */
  readonly schema?: string;
}

/** Changes to several resources by recorded plans (W5): in order, each step checked, undone in reverse where one fails. */
export interface OrderedChanges {
  /** Makes the tables; safe to repeat, also by several replicas at once. */
  install(): Promise<void>;
  /**
   * Makes the change; answers how it ended: `done`, `undone` or `needs_person`. Throws a ProblemError
   * (`plan_exists`) when there is a plan with this id: one intent, one plan.
   */
  run<Input>(
    change: OrderedChange<Input>,
    plan: { readonly id: string; readonly input: Input; readonly startedBy: string },
  ): Promise<PlanView>;
  /** Unfinished plans that nobody works on: interrupted by a crash, or left for a person. The oldest first; `limit` is 100 by default, 1,000 at most. */
  findInterrupted(limit?: number): Promise<readonly PlanView[]>;
  /** The plan as it is now; null: there is none by this id. */
  get(planId: string): Promise<PlanView | null>;
  /**
   * Undoes what an interrupted plan has made, as after a failure. A step that is in doubt stops it: look what happened,
   * mend it, and settle the plan. Throws a ProblemError (`plan_at_work`) when somebody works on it or it is finished.
   */
  rollBack<Input>(change: OrderedChange<Input>, planId: string): Promise<PlanView>;
  /** A person says that nothing is left to do. False: somebody works on the plan, or it is finished. */
  settle(planId: string, by: string, note: string): Promise<boolean>;
}

/**
 * Ordered changes whose plans are kept in this database. Throws a RangeError for an option out of its bounds.
 *
 * @example
 * const changes = orderedChanges(pool);
 * await changes.install();
 * const plan = await changes.run(shiftTraffic, { id: 'shift:prod-eu:release-9', input: { env: 'prod-eu', to: 'v9' }, startedBy: runId });
 * if (plan.state !== 'done') console.log(plan.steps);
 */
export function orderedChanges(pool: Pool, options: OrderedChangesOptions = {}): OrderedChanges {
  const { stepTimeoutMs = 60_000, schema = 'writ_plans' } = options;
  if (!Number.isSafeInteger(stepTimeoutMs) || stepTimeoutMs <= 0 || stepTimeoutMs > 86_400_000)
    throw new RangeError('stepTimeoutMs must be from 1 to 86,400,000');
  const store = new PlanStore(schema);
  const view = async (planId: string): Promise<PlanView> => {
    const plan = await store.get(pool, planId);
    if (plan === null) throw unknownPlan(planId);
    return plan;
  };
  return {
    install: () => store.install(pool),
    get: (planId) => store.get(pool, planId),
    findInterrupted: (limit = 100) =>
      inTransaction(pool, (client) => store.unattended(client, Math.min(Math.max(1, limit), 1_000))),
    settle: (planId, by, note) => store.settle(pool, planId, by, note),
    async run(change, plan) {
      checkSteps(change);
      const worker = new Worker(pool, store, change, plan.id, randomUUID(), stepTimeoutMs);
      if (!(await store.add(pool, { ...plan, name: change.name }, change.steps, worker.attempt, stepTimeoutMs)))
        throw planExists(plan.id);
      await worker.make(plan.input);
      return view(plan.id);
    },
    async rollBack(change, planId) {
      const plan = await view(planId);
      if (plan.name !== change.name || plan.steps.some(({ name }, index) => change.steps[index]?.name !== name))
        throw new TypeError(`the plan ${planId} is of another change: ${plan.name}`);
      const worker = new Worker(pool, store, change, planId, randomUUID(), stepTimeoutMs);
      if (!(await store.takeOver(pool, planId, worker.attempt, stepTimeoutMs))) throw atWork(planId);
      await worker.unmake(await view(planId));
      return view(planId);
    },
  };
}

/** Another process has taken the plan: this one must do nothing more. */
class PlanLost extends Error {
  override readonly name = 'PlanLost';

  constructor(planId: string) {
    super(`the plan ${planId} was taken over meanwhile; this process does nothing more about it`);
  }
}

/** How an attempt at a step, or at its undoing, ended. */
interface StepEnd {
  readonly state: StepState;
  readonly why?: string;
  readonly result?: unknown;
}

/** One attempt at one plan. */
class Worker<Input> {
  constructor(
    private readonly pool: Pool,
    private readonly store: PlanStore,
    private readonly change: OrderedChange<Input>,
    private readonly planId: string,
    readonly attempt: string,
    private readonly timeoutMs: number,
  ) {}

  async make(input: Input): Promise<void> {
    const results: Record<string, unknown> = {};
    for (const [position, step] of this.change.steps.entries()) {
      const before = this.change.steps[position - 1];
      const end = await this.attemptStep(position, 'running', step, async (client, signal) => {
        const context = { client, planId: this.planId, input, results, signal };
        if (before !== undefined && !(await before.holds({ ...context, result: results[before.name] })))
          return { state: 'failed', why: `precondition: what ${before.name} made has changed since` };
        return { state: 'done', result: (await step.run(context)) ?? null };
      });
      if (end.state !== 'done') return this.stopAt(end.state, input, results);
      results[step.name] = end.result;
    }
    await this.end('done');
  }

  /** Undoes all that the record shows as made. */
  async unmake(plan: PlanView): Promise<void> {
    const doubtful = await this.settleBroken(plan);
    if (doubtful) return this.end('needs_person');
    const made = (await this.store.get(this.pool, this.planId))?.steps ?? [];
    const results = Object.fromEntries(
      made.filter(({ state }) => state === 'done').map(({ name, result }) => [name, result]),
    );
    return this.undo(plan.input as Input, results);
  }

  /** What a crash has left under way: nothing was done if it could only be done in a transaction; else nobody knows. */
  private async settleBroken(plan: PlanView): Promise<boolean> {
    let doubtful = false;
    for (const [position, { state, effects }] of plan.steps.entries()) {
      const known = effects === 'in_transaction';
      if (state === 'running') {
        const end = known
          ? { state: 'failed' as const, why: 'interrupted' }
          : { state: 'in_doubt' as const, why: 'interrupted' };
        await this.record(position, end);
      }
      if (state === 'undoing') {
        const end = known
          ? { state: 'done' as const }
          : { state: 'in_doubt' as const, why: 'interrupted while undoing' };
        await this.record(position, end);
      }
      doubtful ||=
        state === 'in_doubt' || state === 'not_undone' || ((state === 'running' || state === 'undoing') && !known);
    }
    return doubtful;
  }

  /** Whether it goes back from here: not while nobody knows how far it got (E3). */
  private stopAt(state: StepState, input: Input, results: Record<string, unknown>): Promise<void> {
    return state === 'failed' ? this.undo(input, results) : this.end('needs_person');
  }

  private async undo(input: Input, results: Record<string, unknown>): Promise<void> {
    for (const [position, step] of [...this.change.steps.entries()].reverse()) {
      if (!Object.hasOwn(results, step.name)) continue;
      const end = await this.attemptStep(position, 'undoing', step, async (client, signal) => {
        const context = { client, planId: this.planId, input, results, signal, result: results[step.name] };
        if (typeof step.undo !== 'function') return { state: 'not_undone', why: `cannot: ${step.undo.cannot}` };
        if (!(await step.holds(context)))
          return { state: 'not_undone', why: 'changed_since: somebody else has changed it' };
        return (await step.undo(context)) === 'undone'
          ? { state: 'undone' }
          : { state: 'not_undone', why: 'changed_since: somebody else has changed it' };
      });
      // What stands on a step that could not be undone is not pulled away from under it either.
      if (end.state !== 'undone') return this.end('needs_person');
    }
    return this.end('undone');
  }

  /** Records that it is begun, then works and records the end in one transaction. */
  private async attemptStep(
    position: number,
    state: 'running' | 'undoing',
    { effects }: OrderedStep<Input>,
    work: (client: PoolClient, signal: AbortSignal) => Promise<StepEnd>,
  ): Promise<StepEnd> {
    const at = this.at(position);
    if (!(await this.store.begin(this.pool, at, state, this.timeoutMs))) throw new PlanLost(this.planId);
    try {
      return await inTransaction(this.pool, async (client) => {
        if ((await this.store.hold(client, at)) !== state) throw new PlanLost(this.planId);
        await client.query('SAVEPOINT step');
        const end = await work(client, AbortSignal.timeout(this.timeoutMs));
        if (end.state !== 'done' && end.state !== 'undone') await client.query('ROLLBACK TO SAVEPOINT step');
        await this.store.endStep(client, at, end.state, end);
        return end;
      });
    } catch (error) {
      if (error instanceof PlanLost) throw error;
      const certain = effects === 'in_transaction' || error instanceof ProblemError;
      const failed = state === 'running' ? 'failed' : 'not_undone';
      return this.record(position, { state: certain ? failed : 'in_doubt', why: reasonOf(error) });
    }
  }

  /**
   * Records how a step ended whose transaction did not. If that has committed after all, and only its answer was lost,
   * the record of it counts.
   */
  private record(position: number, end: StepEnd): Promise<StepEnd> {
    const at = this.at(position);
    return inTransaction(this.pool, async (client) => {
      const state = await this.store.hold(client, at);
      if (state === null) throw new PlanLost(this.planId);
      if (state === 'done' || state === 'undone') {
        const steps = (await this.store.get(client, this.planId))?.steps;
        return { state, result: steps?.[position]?.result };
      }
      await this.store.endStep(client, at, end.state, end);
      return end;
    });
  }

  private at(position: number): At {
    return { planId: this.planId, attempt: this.attempt, position };
  }

  private end(state: PlanState): Promise<void> {
    return this.store.endPlan(this.pool, this.planId, this.attempt, state);
  }
}

const MAX_STEPS = 64;

/** All that a step needs is there before anything is done: what undoes it, too (W5). */
function checkSteps({
  steps,
}: {
  readonly steps: readonly Pick<OrderedStep<never>, 'name' | 'run' | 'holds' | 'undo'>[];
}): void {
  if (steps.length === 0 || steps.length > MAX_STEPS)
    throw new RangeError(`an ordered change has 1 to ${MAX_STEPS} steps`);
  const odd = steps.find(({ name }) => !/^[a-z][\w.-]{0,62}$/i.test(name));
  if (odd !== undefined)
    throw new RangeError(`${JSON.stringify(odd.name)} is no name of a step: letters, digits, _ . -`);
  if (new Set(steps.map(({ name }) => name)).size < steps.length)
    throw new RangeError('each step needs a name of its own');
  for (const { name, run, holds, undo } of steps) {
    if (typeof run !== 'function' || typeof holds !== 'function')
      throw new TypeError(`step ${name} needs run and holds`);
    if (typeof undo !== 'function' && typeof undo?.cannot !== 'string')
      throw new TypeError(`step ${name} needs undo: what undoes it, or { cannot: 'why it cannot be undone' }`);
  }
}

/** A code and, of a refusal, its sentence. Other errors' messages can hold anything, and stay out of the record. */
function reasonOf(error: unknown): string {
  if (error instanceof ProblemError) return `${error.problem.code}: ${error.problem.detail}`.slice(0, 1_000);
  const { name, code } = error as { name?: unknown; code?: unknown };
  return `error: ${[name, code].filter((part) => typeof part === 'string').join(' ') || 'unknown'}`.slice(0, 200);
}

function planExists(id: string): ProblemError {
  return new ProblemError({
    status: 409,
    code: 'plan_exists',
    detail: `There is a plan ${id}: one intent has one plan, and it is not done again.`,
    next: 'Look how far that plan got. For another intent take another id.',
  });
}

function atWork(id: string): ProblemError {
  return new ProblemError({
    status: 409,
    code: 'plan_at_work',
    detail: `The plan ${id} is being worked on, or is finished.`,
    next: 'Look at its state; only a plan that findInterrupted shows can be rolled back.',
  });
}

function unknownPlan(id: string): ProblemError {
  return new ProblemError({ status: 404, code: 'plan_unknown', detail: `There is no plan ${id}.` });
}
