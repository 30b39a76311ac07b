import type { Pool, PoolClient } from 'pg';
import { type GuardedWrite, GuardRefusedError, type PostgresGuard } from '../../clients/target/index.js';

/**
 * What the demo's target service keeps, in a schema of its own beside the guard's. A resource of Writ has one or more
 * parts: a document and a pointer are one part with an empty name, a migration has its rows.
 */
const SCHEMA = `
CREATE SCHEMA IF NOT EXISTS target;
CREATE TABLE IF NOT EXISTS target.part (
  resource   text NOT NULL,
  part       text NOT NULL,
  version    bigint NOT NULL CHECK (version > 0),
  body       jsonb NOT NULL,
  changed_by text NOT NULL,
  PRIMARY KEY (resource, part)
);
-- The service's own record of what was asked of it (W6), which does not depend on the coordinator.
CREATE TABLE IF NOT EXISTS target.request (
  request_id     text NOT NULL,
  run_id         text NOT NULL,
  lease_id       text NOT NULL,
  resource       text NOT NULL,
  part           text NOT NULL,
  action         text NOT NULL,
  precondition   text NOT NULL,
  status         integer NOT NULL,
  code           text NOT NULL,
  guard          text NOT NULL,
  coordinator    text NOT NULL,
  new_version    bigint,
  received_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS request_by_id ON target.request (request_id);`;

const SEED = `
INSERT INTO target.part (resource, part, version, body, changed_by) VALUES
  ('notification-policy/prod-alerts', '', 41, '{"destinations": ["pager:ops"], "severity": "warning"}', 'seed'),
  ('release/prod-eu', '', 7, '{"image": "shop:1.8.2"}', 'seed'),
  ('migration/customer-1842', 'rows/1', 1, '{"account": "1842-a", "plan": "legacy"}', 'seed')
ON CONFLICT DO NOTHING`;

export interface Part {
  readonly version: number;
  readonly body: unknown;
  readonly changedBy: string;
}

/** On which condition a write may happen: the part is at a version, or is not there yet. */
export type Precondition = { readonly version: number } | { readonly absent: true };

/** A write that a run asks for. */
export interface WriteRequest extends GuardedWrite {
  readonly runId: string;
  readonly part: string;
  readonly precondition: Precondition;
  readonly body: unknown;
}

/** What the guard said: `ok`, or the reason of its refusal. */
export type GuardAnswer = string;

export type WriteOutcome =
  | { readonly kind: 'written'; readonly version: number }
  | { readonly kind: 'not_allowed' }
  | { readonly kind: 'conflict'; readonly currentVersion: number | null };

/** A line of the service's own record. */
export interface RequestRecord {
  readonly requestId: string;
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly part: string;
  readonly action: string;
  readonly precondition: string;
  readonly status: number;
  readonly code: string;
  readonly guard: string;
  readonly coordinator: string;
  readonly newVersion: number | null;
}

export class TargetStore {
  constructor(
    private readonly pool: Pool,
    private readonly guard: PostgresGuard,
  ) {}

  async install(): Promise<void> {
    await this.guard.install(this.pool);
    await this.pool.query(SCHEMA);
    await this.pool.query(SEED);
  }

  async read(resource: string, part: string): Promise<Part | null> {
    const { rows } = await this.pool.query<{ version: string; body: unknown; changed_by: string }>(
      'SELECT version, body, changed_by FROM target.part WHERE resource = $1 AND part = $2',
      [resource, part],
    );
    const [row] = rows;
    return row === undefined ? null : { version: Number(row.version), body: row.body, changedBy: row.changed_by };
  }

  /** Raises the guard's mark for a new holder, before it reads (C7). */
  async open(write: Pick<GuardedWrite, 'resource' | 'token' | 'action' | 'runId'>): Promise<GuardAnswer> {
    return guardAnswer(() => this.guard.open(this.pool, write));
  }

  /**
   * One transaction: the guard, then the coordinator's verdict while the guard's lock is held, then the write under its
   * version condition. It commits only if all three agree. Both gates are asked even when the first refuses, so that
   * the answer can say what each of them knew.
   */
  async write(
    request: WriteRequest,
    mayWrite: () => Promise<boolean>,
  ): Promise<{ readonly guard: GuardAnswer; readonly outcome: WriteOutcome }> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      const guard = await guardAnswer(() => this.guard.admit(client, request));
      const allowed = (await mayWrite()) && guard === 'ok';
      const outcome: WriteOutcome = allowed ? await change(client, request) : { kind: 'not_allowed' };
      await client.query(outcome.kind === 'written' ? 'COMMIT' : 'ROLLBACK');
      return { guard, outcome };
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }

  async record(entry: RequestRecord): Promise<void> {
    await this.pool.query(
      `INSERT INTO target.request (request_id, run_id, lease_id, resource, part, action, precondition, status, code,
                                   guard, coordinator, new_version)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
      [
        entry.requestId,
        entry.runId,
        entry.leaseId,
        entry.resource,
        entry.part,
        entry.action,
        entry.precondition,
        entry.status,
        entry.code,
        entry.guard,
        entry.coordinator,
        entry.newVersion,
      ],
    );
  }

  async recorded(requestId: string): Promise<readonly RequestRecord[]> {
    const { rows } = await this.pool.query<RequestRecord>(
      `SELECT request_id AS "requestId", run_id AS "runId", lease_id AS "leaseId", resource, part, action, precondition,
              status, code, guard, coordinator, new_version::integer AS "newVersion"
       FROM target.request WHERE request_id = $1 ORDER BY received_at`,
      [requestId],
    );
    return rows;
  }
}

async function guardAnswer(ask: () => Promise<void>): Promise<GuardAnswer> {
  try {
    await ask();
    return 'ok';
  } catch (error) {
    if (error instanceof GuardRefusedError) return error.reason;
    throw error;
  }
}

/** Check and change are one statement, where the state lives: no row means a conflict (W1). */
async function change(client: PoolClient, request: WriteRequest): Promise<WriteOutcome> {
  const { resource, part, precondition, body, runId } = request;
  const json = JSON.stringify(body);
  const { rows } =
    'absent' in precondition
      ? await client.query<{ version: string }>(
          `INSERT INTO target.part (resource, part, version, body, changed_by) VALUES ($1, $2, 1, $3, $4)
           ON CONFLICT DO NOTHING RETURNING version`,
          [resource, part, json, runId],
        )
      : await client.query<{ version: string }>(
          `UPDATE target.part SET version = version + 1, body = $3, changed_by = $4
           WHERE resource = $1 AND part = $2 AND version = $5 RETURNING version`,
          [resource, part, json, runId, precondition.version],
        );
  const [written] = rows;
  if (written !== undefined) return { kind: 'written', version: Number(written.version) };
  const current = await client.query<{ version: string }>(
    'SELECT version FROM target.part WHERE resource = $1 AND part = $2',
    [resource, part],
  );
  const [row] = current.rows;
  return { kind: 'conflict', currentVersion: row === undefined ? null : Number(row.version) };
}
