/**
 * A target's process, to be killed in the middle. It is run from the build: node target-process.mjs MODE DATABASE_URL.
 * It says on stdout how far it got, and then waits for its end.
 */
import pg from 'pg';
import { answerOnce, jsonAnswer, orderedChanges, postgresIdempotency } from '../../dist/clients/target/index.js';

const [, , mode, url] = process.argv;
const pool = new pg.Pool({ connectionString: url });
const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`);
const forEver = () => new Promise(() => setInterval(() => undefined, 60_000));

/** @param {'in_transaction' | 'elsewhere_too'} effects */
async function shift(effects) {
  const { shiftTraffic } = await import('./shift-traffic.mjs');
  const stuck = shiftTraffic(effects, async () => {
    say('stuck');
    await forEver();
  });
  const plan = { id: 'shift-1', input: { env: 'prod-eu', image: 'shop:8' }, startedBy: 'run-a' };
  await orderedChanges(pool, { stepTimeoutMs: 500 }).run(stuck, plan);
}

/** @param {'in_transaction' | 'elsewhere_too'} effects */
async function order(effects) {
  const times = { retentionMs: 86_400_000, inDoubtMs: 86_400_000, leaseMs: 500 };
  const keys = postgresIdempotency(pool, { ...times, effects });
  const request = { principal: 'run-a', route: 'POST /orders', method: 'POST', path: '/orders', body: undefined };
  await answerOnce(keys, { ...request, idempotencyKey: 'k1' }, async (client) => {
    await client.query(`INSERT INTO orders (item) VALUES ('book')`);
    say('stuck');
    await forEver();
    return jsonAnswer(201, {});
  });
}

const [what, effects] = /** @type {[string, 'in_transaction' | 'elsewhere_too']} */ (String(mode).split(':'));
await (what === 'shift' ? shift(effects) : order(effects));
