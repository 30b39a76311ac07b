import pg from 'pg';
import { GuardRefusedError } from '../../src/clients/target/guard.js';
import { postgresGuard } from '../../src/clients/target/postgres-guard.js';
import type { SeenLease } from './history.js';
import type { Recorder } from './recorder.js';
import type { Stage } from './stage.js';

/** A target service's own data, behind the guard of the target kit. */
export class Target {
  private readonly guard = postgresGuard();

  private constructor(
    private readonly recorder: Recorder,
    private readonly pool: pg.Pool,
  ) {}

  /** In a database of its own on that server. */
  static async open(stage: Stage, recorder: Recorder, serverUrl: string): Promise<Target> {
    const admin = new pg.Client({ connectionString: serverUrl });
    await admin.connect();
    await admin.query('CREATE DATABASE target').finally(() => admin.end());
    const url = new URL(serverUrl);
    url.pathname = '/target';
    const pool = new pg.Pool({
      connectionString: url.href,
      max: 6,
      connectionTimeoutMillis: 2_000,
      statement_timeout: 3_000,
      idle_in_transaction_session_timeout: 10_000,
    });
    pool.on('error', () => undefined);
    stage.add('target', () => pool.end());
    const target = new Target(recorder, pool);
    await target.guard.install(pool);
    await pool.query('CREATE TABLE thing (resource text PRIMARY KEY, writes bigint NOT NULL DEFAULT 0)');
    return target;
  }

  /** A new holder's first act. */
  open(resource: string, token: number): Promise<{ accepted: boolean } | null> {
    return this.recorder.call('open', 'target', 'target', { resource, token }, () =>
      this.guard.open(this.pool, { resource, token: BigInt(token) }).then(() => ({ accepted: true }), refusal),
    );
  }

  /** The guard, the fence check, the change, in one transaction; `isAllowed` is the check. */
  write(
    lease: Pick<SeenLease, 'leaseId' | 'runId'>,
    { resource, token, exclusive }: { readonly resource: string; readonly token: number; readonly exclusive: boolean },
    action: string,
    isAllowed: () => Promise<boolean>,
  ): Promise<{ accepted: boolean; position: number } | null> {
    const asked = { resource, token, leaseId: lease.leaseId, exclusive };
    const write = { resource, action, token: BigInt(token), exclusive, runId: lease.runId };
    return this.recorder.call('write', 'target', 'target', asked, () =>
      this.guard
        .write(this.pool, [write], async (client) => {
          if (!(await isAllowed())) throw new NotAllowed();
          const { rows } = await client.query<{ writes: string }>(
            `INSERT INTO thing (resource, writes) VALUES ($1, 1)
             ON CONFLICT (resource) DO UPDATE SET writes = thing.writes + 1 RETURNING writes`,
            [resource],
          );
          return { accepted: true, position: Number(rows[0]?.writes) };
        })
        .catch((error: unknown) => ({ ...refusal(error), position: 0 })),
    );
  }
}

/** The check said no: everything is rolled back. */
class NotAllowed extends Error {}

function refusal(error: unknown): { accepted: false } {
  if (error instanceof GuardRefusedError || error instanceof NotAllowed) return { accepted: false };
  throw error;
}
