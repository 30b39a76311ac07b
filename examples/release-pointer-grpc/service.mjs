/** A release pointer on gRPC behind Writ: the gate is an interceptor, the guard and the version condition are in Postgres. */
import { loadPackageDefinition, Server } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import {
  conditionOf,
  createGate,
  grpcGate,
  grpcStatusOf,
  ProblemError,
  postgresGuard,
  problem,
  problemOf,
  readRouteTable,
  writesOf,
} from 'writ/target';

const SCHEMA = `
CREATE TABLE IF NOT EXISTS release (env text PRIMARY KEY, version bigint NOT NULL, image text NOT NULL);
INSERT INTO release VALUES ('prod-eu', 7, 'shop:1.8.2'), ('staging', 3, 'shop:1.9.0') ON CONFLICT DO NOTHING;`;

/** The contract, read at start: nothing is generated. */
export const { ReleasePointer } = loadPackageDefinition(
  loadSync(new URL('release_pointer.proto', import.meta.url).pathname),
).releases.v1;

export async function createService({ pool, writ, log = console.error }) {
  const guard = postgresGuard();
  await guard.install(pool);
  await pool.query(SCHEMA);
  const gate = createGate({
    client: writ,
    routes: readRouteTable(new URL('routes.yaml', import.meta.url)),
    onProblem: log,
  });

  const server = new Server({
    interceptors: [grpcGate(gate, { onProblem: (error) => log('the gate failed', error) })],
  });
  server.addService(ReleasePointer.service, {
    get: answering(async ({ request }) => find(request.env)),

    open: answering(async (call) => {
      const { toGuard } = writesOf(call.metadata);
      // Nothing: the kind is only observed, and nobody is shut out.
      if (toGuard.length > 0) await guard.open(pool, ...toGuard);
      return {};
    }),

    promote: answering((call) => {
      const { toGuard, writes, requestId } = writesOf(call.metadata);
      const { env, image } = call.request;
      const condition = conditionOf(headersOf(call.metadata), { ...writes[0], requestId });
      return guard.write(pool, toGuard, async (client) => {
        const { version } = await condition.change(client, {
          update: {
            text: 'UPDATE release SET image = $2, version = version + 1 WHERE env = $1 AND version = :observed RETURNING version',
            values: [env, image],
          },
          current: { text: 'SELECT version FROM release WHERE env = $1', values: [env] },
        });
        return { env, image, version };
      });
    }),
  });
  return { server, close: () => gate.close() };

  async function find(env) {
    const { rows } = await pool.query('SELECT env, image, version FROM release WHERE env = $1', [env]);
    if (rows.length === 0)
      throw new ProblemError({ status: 404, code: 'not_found', detail: `There is no release pointer of ${env}.` });
    return rows[0];
  }

  /** A handler that returns its answer; what it throws is told as a rich status. */
  function answering(handler) {
    return async (call, callback) => {
      try {
        callback(null, await handler(call));
      } catch (error) {
        const refusal = problemOf(error);
        if (refusal === undefined) log('a call failed', error);
        callback(grpcStatusOf(refusal ?? FAILED));
      }
    };
  }
}

const FAILED = problem({ status: 500, code: 'internal', detail: 'The service failed.' });

/** Metadata as the conditions of the target kit read it. */
const headersOf = (metadata) => ({ get: (name) => metadata.get(name).join(', ') || null });
