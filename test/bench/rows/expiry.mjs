import { setTimeout as pause } from 'node:timers/promises';
import { atMost, settle } from '../bench.mjs';
import { fill } from '../crowd.mjs';
import { closedLoop } from '../measure.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Coordinator } from '../coordinator.mjs' */
/** @import { Held, Clients } from '../client.mjs' */
/** @import { Row } from '../report.mjs' */

const IN_FLIGHT = 16;
const OTHERS = 100;
const TTL_SECONDS = 3_600;
const MOST = 3;
/** Acquired to see how long acquiring all will take. */
const SAMPLE = 1_000;
/** So early the load begins again. */
const BEFORE_MS = 200;
/** Between two looks at whether all have become events. */
const LOOK_MS = 1_000;

/**
 * Many leases whose ttls end at one instant: how checks of other leases fare from then on until all of them are events,
 * beside the same checks before; and whether a check of one of them is ever allowed after its expiry. Writ's clock is its
 * Postgres's, on this machine, and so is ours.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function expiry(bench) {
  const coordinator = await bench.launcher.lend('expiry');
  const others = await fill(coordinator, OTHERS, { ttlSeconds: TTL_SECONDS, resources: 1, under: 'item/others' });
  const check = checker(coordinator.clients, others);
  const doomed = await acquireAll(bench, coordinator);
  await settle(bench, coordinator);
  await closedLoop(IN_FLIGHT, bench.scale.warmUpMs / 2, check);
  const idle = await closedLoop(IN_FLIGHT, bench.scale.repetitionMs, check);
  const first = doomed.reduce((earliest, { expiresAtMs }) => Math.min(earliest, expiresAtMs), Number.POSITIVE_INFINITY);
  if (Date.now() > first) throw new Error('the leases have expired too early: the machine is too busy for this row');
  await pause(first - Date.now() - BEFORE_MS);
  bench.progress('expiry: all of them at once');
  const result = await atTheInstant(coordinator, check, doomed);
  await bench.launcher.takeBack(coordinator);
  return rowsOf(doomed.length, idle.p99, result);
}

/** With ttls that end together, as soon as all can have been acquired. @param {Bench} bench @param {Coordinator} coordinator */
async function acquireAll(bench, coordinator) {
  const { leases, marginSeconds } = bench.scale.expiry;
  const from = performance.now();
  const sample = Math.min(SAMPLE, leases);
  await fill(coordinator, sample, { ttlSeconds: TTL_SECONDS, resources: 1, under: 'item/sample' });
  const seconds = ((performance.now() - from) / 1_000) * (leases / sample);
  const at = Date.now() + (1.5 * seconds + marginSeconds) * 1_000;
  bench.progress(`expiry: acquiring ${leases.toLocaleString('en-US')} leases`);
  const ttlSeconds = () => Math.min(TTL_SECONDS, Math.max(1, (at - Date.now()) / 1_000));
  return fill(coordinator, leases, { ttlSeconds, resources: 1, under: 'item/expiry' });
}

/** @param {Clients} clients @param {Held[]} held */
function checker(clients, held) {
  const requests = held.map((lease) => clients.checkOf(lease, 1));
  let next = 0;
  return () => clients.check(requests[next++ % requests.length]);
}

/**
 * Checks until every lease has become an event, one worker's of leases that have expired.
 * @param {Coordinator} coordinator @param {() => Promise<void>} check @param {Held[]} doomed
 */
async function atTheInstant(coordinator, check, doomed) {
  const { clients } = coordinator;
  const database = await coordinator.database();
  const lasting = (await database.liveLeases()) - doomed.length;
  const began = performance.now();
  let swept = false;
  let asked = 0;
  let allowed = 0;
  const ask = async () => {
    const lease = doomed[Math.floor(Math.random() * doomed.length)];
    if (lease === undefined || lease.expiresAtMs > Date.now()) return pause(1);
    asked += 1;
    if (await clients.isAllowed(clients.checkOf(lease, 1))) allowed += 1;
  };
  const watch = async () => {
    while ((await database.liveLeases()) > lasting) await pause(LOOK_MS);
    swept = true;
    return (performance.now() - began) / 1_000;
  };
  const [sample, , seconds] = await Promise.all([
    closedLoop(IN_FLIGHT, Number.POSITIVE_INFINITY, check, () => !swept),
    closedLoop(1, Number.POSITIVE_INFINITY, ask, () => !swept),
    watch(),
  ]);
  return { p99: sample.p99, perSecond: sample.perSecond, asked, allowed, seconds };
}

/** @param {number} leases @param {number} idleP99 @param {Awaited<ReturnType<typeof atTheInstant>>} result @returns {Row[]} */
function rowsOf(leases, idleP99, { p99, perSecond, asked, allowed, seconds }) {
  const many = `${leases.toLocaleString('en-US')} leases expire at once`;
  const ratio = p99 / idleP99;
  return [
    {
      name: `${many}: p99 of checks over idle`,
      value: ratio,
      unit: '×',
      p99,
      ratio,
      target: `${MOST} × at most`,
      reached: atMost(ratio, MOST),
      note: `p99 ${idleP99.toFixed(1)} ms before; until all were events, ${seconds.toFixed(1)} s, ${Math.round(perSecond)} checks/s`,
    },
    {
      name: `${many}: allowed after their expiry`,
      value: allowed,
      unit: 'checks',
      target: 'none',
      reached: asked === 0 ? null : allowed === 0,
      note: `of ${asked.toLocaleString('en-US')} checks`,
    },
  ];
}
