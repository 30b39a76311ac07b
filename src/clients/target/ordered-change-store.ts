import type { ClientBase, Pool } from 'pg';
import { installSchemaSql, plainSchemaName } from './schema-name.js';

/** Where a plan is. */
export type PlanState =
  /** Its steps are being made, or were when the process that made them was lost. */
  | 'running'
  /** Steps that were made are being undone, or were. */
  | 'undoing'
  | 'done'
  /** A step failed, and all before it were undone. */
  | 'undone'
  /** It goes neither on nor back by itself. */
  | 'needs_person'
  /** A person has said that nothing is left to do. */
  | 'settled';

/** How far a step has come. */
export type StepState =
  | 'planned'
  | 'running'
  | 'done'
  /** Not made: nothing of it is there. */
  | 'failed'
  | 'undoing'
  | 'undone'
  /** Made and still there, or changed since by somebody else. */
  | 'not_undone'
  /** Nobody knows whether it, or its undoing, has happened. */
  | 'in_doubt';

/** Whether a step changes things only through the connection that it is given, or also elsewhere. */
export type StepEffects = 'in_transaction' | 'elsewhere_too';

/** One step of a plan, as it is recorded. */
export interface StepView {
  readonly name: string;
  readonly state: StepState;
  readonly effects: StepEffects;
  /** What the step returned. */
  readonly result: unknown;
  /** Why it failed, was not undone or is in doubt; a code and a sentence, no content. */
  readonly why: string | null;
}

/** A plan as it is recorded. */
export interface PlanView {
  readonly id: string;
  /** Of the OrderedChange it was made by. */
  readonly name: string;
  readonly state: PlanState;
  /** The intended state. */
  readonly input: unknown;
  /** As `run` was told. */
  readonly startedBy: string;
  /** On the database's clock. */
  readonly startedAt: Date;
  /** In their order. */
  readonly steps: readonly StepView[];
  /** Who settled it, and with which words. */
  readonly settled: { readonly by: string; readonly note: string } | null;
}

type Connection = Pick<Pool | ClientBase, 'query'>;

/** The table of plans and their steps, in a schema of the target's database. */
export class PlanStore {
  private readonly plan: string;
  private readonly step: string;

  constructor(private readonly schema: string) {
    plainSchemaName(schema, 'the schema of ordered changes');
    this.plan = `${schema}.plan`;
    this.step = `${schema}.step`;
  }

  async install(client: Connection): Promise<void> {
    await client.query(schemaSql(this.schema));
  }

  /** Records what is intended, before anything is done. False: there is a plan with this id. */
  async add(
    client: Connection,
    plan: Pick<PlanView, 'id' | 'name' | 'input' | 'startedBy'>,
    steps: readonly Pick<StepView, 'name' | 'effects'>[],
    attempt: string,
    workMs: number,
  ): Promise<boolean> {
    const { rowCount } = await client.query(
      `WITH plan AS (
         INSERT INTO ${this.plan} (id, name, state, input, started_by, attempt, working_until)
         VALUES ($1, $2, 'running', $3, $4, $5, clock_timestamp() + $6::float8 * interval '1 millisecond')
         ON CONFLICT DO NOTHING RETURNING id)
       INSERT INTO ${this.step} (plan_id, position, name, effects, state)
       SELECT plan.id, step.position - 1, step.name, step.effects, 'planned'
       FROM plan, unnest($7::text[], $8::text[]) WITH ORDINALITY AS step (name, effects, position)`,
      [
        plan.id,
        plan.name,
        JSON.stringify(plan.input),
        plan.startedBy,
        attempt,
        workMs,
        steps.map(({ name }) => name),
        steps.map(({ effects }) => effects),
      ],
    );
    return rowCount === steps.length;
  }

  /** Says what is begun, before it is. False: the plan is not this attempt's any more. */
  async begin(client: Connection, at: At, state: 'running' | 'undoing', workMs: number): Promise<boolean> {
    const { rowCount } = await client.query(
      `WITH plan AS (
         UPDATE ${this.plan} SET state = $4, working_until = clock_timestamp() + $5::float8 * interval '1 millisecond'
         WHERE id = $1 AND attempt = $2 AND state IN ('running', 'undoing') RETURNING id)
       UPDATE ${this.step} AS step SET state = $4, why = NULL FROM plan WHERE step.plan_id = plan.id AND step.position = $3`,
      [at.planId, at.attempt, at.position, state, workMs],
    );
    return rowCount === 1;
  }

  /**
   * Keeps the plan for this attempt to the end of the transaction: as long as that can commit, nobody takes its place.
   * Answers the state of the step; null: the plan is not this attempt's any more.
   */
  async hold(client: Connection, at: At): Promise<StepState | null> {
    const { rowCount } = await client.query(`SELECT FROM ${this.plan} WHERE id = $1 AND attempt = $2 FOR UPDATE`, [
      at.planId,
      at.attempt,
    ]);
    if (rowCount !== 1) return null;
    const { rows } = await client.query<{ state: StepState }>(
      `SELECT state FROM ${this.step} WHERE plan_id = $1 AND position = $2`,
      [at.planId, at.position],
    );
    return rows[0]?.state ?? null;
  }

  /** Under `hold`. A result that is undefined leaves the one that is there. */
  async endStep(client: Connection, at: At, state: StepState, end: { why?: string; result?: unknown }): Promise<void> {
    await client.query(
      `UPDATE ${this.step} SET state = $3, why = $4, result = coalesce($5, result) WHERE plan_id = $1 AND position = $2`,
      [at.planId, at.position, state, end.why ?? null, end.result === undefined ? null : JSON.stringify(end.result)],
    );
  }

  async endPlan(client: Connection, planId: string, attempt: string, state: PlanState): Promise<void> {
    await client.query(
      `UPDATE ${this.plan} SET state = $3 WHERE id = $1 AND attempt = $2 AND state IN ('running', 'undoing')`,
      [planId, attempt, state],
    );
  }

  /** Takes an unfinished plan that nobody works on. False: somebody does, or it is finished. */
  async takeOver(client: Connection, planId: string, attempt: string, workMs: number): Promise<boolean> {
    const { rowCount } = await client.query(
      `UPDATE ${this.plan} SET attempt = $2, state = 'undoing', working_until = clock_timestamp() + $3::float8 * interval '1 millisecond'
       WHERE id = (SELECT id FROM ${this.plan} WHERE id = $1 AND ${UNATTENDED} FOR UPDATE SKIP LOCKED)`,
      [planId, attempt, workMs],
    );
    return rowCount === 1;
  }

  async settle(client: Connection, planId: string, by: string, note: string): Promise<boolean> {
    const { rowCount } = await client.query(
      `UPDATE ${this.plan} SET state = 'settled', settled_by = $2, settled_note = $3, attempt = gen_random_uuid()
       WHERE id = (SELECT id FROM ${this.plan} WHERE id = $1 AND ${UNATTENDED} FOR UPDATE SKIP LOCKED)`,
      [planId, by, note],
    );
    return rowCount === 1;
  }

  /** Unfinished plans that nobody works on, the oldest first. One that a transaction holds is being worked on. */
  async unattended(client: Connection, limit: number): Promise<readonly PlanView[]> {
    const { rows } = await client.query<{ id: string }>(
      `SELECT id FROM ${this.plan} WHERE ${UNATTENDED} ORDER BY started_at LIMIT $1 FOR SHARE SKIP LOCKED`,
      [limit],
    );
    return this.views(
      client,
      rows.map(({ id }) => id),
    );
  }

  async get(client: Connection, planId: string): Promise<PlanView | null> {
    return (await this.views(client, [planId]))[0] ?? null;
  }

  private async views(client: Connection, ids: readonly string[]): Promise<readonly PlanView[]> {
    const { rows } = await client.query<PlanView & { settled_by: string | null; settled_note: string | null }>(
      `SELECT plan.id, plan.name, plan.state, plan.input, plan.started_by AS "startedBy", plan.started_at AS "startedAt",
              plan.settled_by, plan.settled_note,
              pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', step.name, 'state', step.state, 'effects', step.effects,
                'result', step.result, 'why', step.why) ORDER BY step.position) AS steps
       FROM ${this.plan} AS plan JOIN ${this.step} AS step ON step.plan_id = plan.id
       WHERE plan.id = ANY ($1) GROUP BY plan.id ORDER BY plan.started_at`,
      [ids],
    );
    return rows.map(({ settled_by: by, settled_note: note, ...plan }) => ({
      ...plan,
      settled: by === null ? null : { by, note: note ?? '' },
    }));
  }
}

/** One step of a plan, as one attempt sees it. */
export interface At {
  readonly planId: string;
  readonly attempt: string;
  readonly position: number;
}

const UNATTENDED = `(state = 'needs_person' OR (state IN ('running', 'undoing') AND working_until <= clock_timestamp()))`;

function schemaSql(schema: string): string {
  return `${installSchemaSql(schema, 'plans')}
CREATE TABLE IF NOT EXISTS ${schema}.plan (
  id            text PRIMARY KEY CHECK (id <> '' AND length(id) <= 255),
  name          text NOT NULL,
  state         text NOT NULL CHECK (state IN ('running', 'undoing', 'done', 'undone', 'needs_person', 'settled')),
  input         jsonb NOT NULL CHECK (pg_catalog.pg_column_size(input) <= 262144),
  started_by    text NOT NULL CHECK (started_by <> ''),
  started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Who works on it, and until when that is believed.
  attempt       uuid NOT NULL,
  working_until timestamptz NOT NULL,
  settled_by    text,
  settled_note  text,
  CHECK ((state = 'settled') = (settled_by IS NOT NULL AND settled_note IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS plan_unfinished ON ${schema}.plan (started_at) WHERE state IN ('running', 'undoing', 'needs_person');
CREATE TABLE IF NOT EXISTS ${schema}.step (
  plan_id  text NOT NULL REFERENCES ${schema}.plan ON DELETE CASCADE,
  position integer NOT NULL CHECK (position >= 0),
  name     text NOT NULL,
  effects  text NOT NULL CHECK (effects IN ('in_transaction', 'elsewhere_too')),
  state    text NOT NULL CHECK (state IN
    ('planned', 'running', 'done', 'failed', 'undoing', 'undone', 'not_undone', 'in_doubt')),
  result   jsonb,
  why      text,
  PRIMARY KEY (plan_id, position)
);
COMMENT ON TABLE ${schema}.plan IS 'Writ: ordered changes of several resources, as they were intended and as far as they got (W5).';`;
}
