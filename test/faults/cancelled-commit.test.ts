import pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  leaseOf,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

// P8 with a synchronous standby: a commit whose wait for the standby is cancelled is there for everybody to see, and is
// lost with the primary. Nobody is told of it before the standby has it.

let server: PrivatePostgres | undefined;
let replica: TestReplica | undefined;
let admin: pg.Client | undefined;

afterEach(async () => {
  await admin?.end();
  await replica?.stop();
  await server?.stop();
});

test('a grant whose commit was cancelled is answered when the standby has it, and not before', async () => {
  server = await startPrivatePostgres();
  replica = await startReplica({ url: server.url, env: { WRIT_FAILOVER: 'synchronous' } });
  const { api, store } = replica;
  const connected = new pg.Client(server.url);
  admin = connected;
  await connected.connect();
  const standby = async (names: string): Promise<void> => {
    await connected.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await connected.query('SELECT pg_reload_conf()');
  };
  await putMap(api, SIMPLE_MAP);
  const run = await createRun(api);
  await standby('nobody');

  let isAway = true;
  let asked = acquire(0);
  // The first ones may still pass, until every process has read the setting.
  for (let item = 1; !(await isCancelled(asked)); item += 1) asked = acquire(item);
  const { lease, told } = asked;
  // By then whoever found it in the log has had all the time to say so.
  await eventually(
    () => api.getRun(as('runner'), { runId: run }).catch((error) => error.reason),
    (seen) => seen === 'REPLICA_STALE',
  );
  expect(told()).toBe('nothing');
  isAway = false;
  await standby('');
  const granted = leaseOf((await lease).value);
  expect(told()).toBe('when it was back');
  await eventually(
    () =>
      check(api, granted).then(
        ({ reason }) => reason,
        () => '',
      ),
    (seen) => seen === 'ok',
  );

  function acquire(item: number) {
    let when = 'nothing';
    const lease = api.acquireWriteSet(as('runner'), acquireInput(run, [write(`item/${item}`, 'set')]));
    lease.then(
      () => {
        when = isAway ? 'too early' : 'when it was back';
      },
      () => undefined,
    );
    return { lease, told: () => when };
  }

  /** Cancels the append's wait for the standby; false: it was answered without one. */
  async function isCancelled(asking: ReturnType<typeof acquire>): Promise<boolean> {
    const pid = await eventually(
      async () => {
        if (asking.told() !== 'nothing') return 0;
        const { rows } = await connected.query(
          `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%known AS MATERIALIZED%'`,
        );
        return rows[0]?.pid as number | undefined;
      },
      (seen) => seen !== undefined,
    );
    if (pid === 0) return false;
    await connected.query('SELECT pg_cancel_backend($1)', [pid]);
    await eventually(
      () => store.listEvents('default', { kinds: ['lease_granted'], limit: 100, newestFirst: true }),
      (events) => events.length > 0,
    );
    return true;
  }
});
