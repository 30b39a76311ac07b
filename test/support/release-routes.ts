import { type Context, Hono, type Next } from 'hono';
import type { Pool } from 'pg';
import {
  conditionOf,
  type Gate,
  honoGate,
  honoIdempotent,
  type PostgresGuard,
  type PostgresIdempotency,
  type WriteRecord,
  type WriteRecords,
  writesOf,
} from '../../src/clients/target/index.js';

interface Kit {
  readonly pool: Pool;
  readonly gate: Gate;
  readonly guard: PostgresGuard;
  readonly keys: PostgresIdempotency;
  readonly records: WriteRecords;
  /** Whom the service itself knows the caller as, by its session or certificate; undefined: as nobody. */
  readonly callerOf: (c: Context) => string | undefined;
}

/** One protected write with all there is: gate, key, guard, condition and record; the last four in one transaction. */
export function releaseRoutes({ pool, gate, guard, keys, records, callerOf }: Kit): Hono {
  const app = new Hono();
  app.use(honoGate(gate, { caller: (c) => ({ person: callerOf(c) }) }));

  // The run; with an override its person; where the kind is only observed, whom the service knows. Else nobody: 401.
  const identityOf = (c: Context): string => {
    const { runId, override } = writesOf(c);
    return runId || override?.who || callerOf(c) || '';
  };

  const route = { route: 'PUT /releases/{env}', principal: identityOf };
  const promote = honoIdempotent(keys, route, async (c, client) => {
    const { toGuard, writes, requestId } = writesOf(c);
    const { image } = (await c.req.json()) as { image: string };
    const condition = conditionOf(c.req.raw.headers, { ...theOnly(writes), requestId });
    await guard.admit(client, ...toGuard);
    const { version, etag } = await condition.change(client, {
      update: {
        text: 'UPDATE release SET image = $1, version = version + 1 WHERE env = $2 AND version = :observed RETURNING version',
        values: [image, c.req.param('env')],
      },
      current: { text: 'SELECT version FROM release WHERE env = $1', values: [c.req.param('env')] },
    });
    await records.add(client, {
      ...attempt(c, identityOf(c)),
      changedFields: ['image'],
      result: 'written',
      status: 200,
      newVersion: version,
    });
    return c.json({ version }, 200, { etag });
  });

  // A refusal rolls its transaction back, so it is recorded after that, in one of its own.
  const recordRefusal = async (c: Context, next: Next) => {
    await next();
    if (c.res.status < 400) return;
    const { code } = (await c.res.clone().json()) as { code: string };
    await records.add(pool, { ...attempt(c, identityOf(c) || 'nobody'), result: code, status: c.res.status });
  };

  app.put('/releases/:env', recordRefusal, promote);
  return app;
}

/** What is known of a write before its outcome (W6). */
function attempt(c: Context, identity: string): Omit<WriteRecord, 'result' | 'status'> {
  const { runId, requestId, writes, observedVersion } = writesOf(c);
  const { resource, action } = theOnly(writes);
  const precondition = c.req.header('if-match');
  return { identity, runId, requestId, resource, action, method: c.req.method, precondition, observedVersion };
}

function theOnly<T>([one]: readonly T[]): T {
  if (one === undefined) throw new TypeError('the route table declares one write');
  return one;
}
