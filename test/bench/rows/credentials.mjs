import { repeated } from '../bench.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const TTL_SECONDS = 3_600;
/** Credentials that checks with a cache present again and again. */
const SEEN = 500;

/**
 * Credentials: issuing them, and fence checks by them, with signatures that were verified before and with ones that were
 * not. A credential lives a minute, so those that were seen before are renewed at half their life: some 17 a second,
 * which count in that row. What was never seen cannot be had without issuing it: that row is of pairs, and its checks are
 * what it takes longer than issuing alone.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function credentials(bench) {
  const coordinator = await bench.launcher.lend('credentials');
  const { clients } = coordinator;
  const leases = await hold(clients, SEEN);
  const rows = [];
  let next = 0;
  const lease = () => leases[next++ % leases.length];
  for (const inFlight of [1, 64]) {
    bench.progress(`credentials issued, ${inFlight} in flight`);
    const measured = await repeated(bench, coordinator, inFlight, async () => {
      await clients.issue(lease());
    });
    rows.push(rowOf(`credentials issued, ${inFlight} in flight`, 'credentials/s', measured));
  }
  bench.progress('checks by credential, seen before');
  const seen = new Tokens(clients, leases);
  rows.push(
    rowOf(
      'checks by credential, unary, 64 in flight, seen before',
      'checks/s',
      await repeated(bench, coordinator, 64, async () => clients.checkBy(await seen.any())),
    ),
  );
  bench.progress('checks by credential, each new');
  rows.push(
    rowOf(
      'a credential issued and checked once, 64 in flight',
      'pairs/s',
      await repeated(bench, coordinator, 64, async () => {
        const held = lease();
        await clients.checkBy({ held, token: await clients.issue(held) });
      }),
    ),
  );
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/** Credentials that are renewed at half their life, a few at a time. */
class Tokens {
  /** @param {import('../client.mjs').Clients} clients @param {any[]} leases */
  constructor(clients, leases) {
    this.clients = clients;
    this.tokens = leases.map((held) => ({
      held,
      token: '',
      until: 0,
      /** @type {Promise<string> | null} */ coming: null,
    }));
    this.next = 0;
  }

  async any() {
    const one = this.tokens[this.next++ % this.tokens.length];
    if (one === undefined) throw new Error('no lease');
    if (performance.now() > one.until) {
      one.coming ??= this.clients.issue(one.held).finally(() => {
        one.coming = null;
      });
      one.token = await one.coming;
      one.until = performance.now() + 30_000;
    }
    return { held: one.held, token: one.token };
  }
}

/** @param {import('../client.mjs').Clients} clients @param {number} count */
async function hold(clients, count) {
  const runId = await clients.newRun();
  return Promise.all(
    Array.from({ length: count }, async (_, lease) => ({
      runId,
      ...(await clients.acquire(clients.writeSet(runId, [`item/credentials/${lease}`], TTL_SECONDS))),
    })),
  );
}

/** @param {string} name @param {string} unit @param {import('../bench.mjs').Measured} measured @returns {Row} */
function rowOf(name, unit, measured) {
  return {
    name,
    value: measured.perSecond,
    unit,
    p50: measured.p50,
    p99: measured.p99,
    spread: measured.spread,
    ceiling: measured.perSecond / measured.echoPerSecond,
    cpu: measured.cpu,
  };
}
