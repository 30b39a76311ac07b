import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { type Acknowledged, acquireAndRelease, lostOf, newRun, SIMPLE_MAP } from '../support/workload.js';

/** How often each is killed; the sum is the hundred that is promised. WRIT_KILLS makes it shorter or longer. */
const KILLS = Number(process.env.WRIT_KILLS ?? 50);
const CLIENTS = 8;

let last: CoordinatorProcess | undefined;

afterAll(async () => {
  await last?.stop();
});

/** A small generator with a seed, so that a failure can be repeated (mulberry32). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Clients that work until the signal, each with a run of its own that is there before the first kill can come. */
async function load(
  coordinator: CoordinatorProcess,
  round: number,
  until: AbortSignal,
): Promise<{ told: Promise<Acknowledged[]> }> {
  const client = coordinator.client('runner');
  const runs = await Promise.all(Array.from({ length: CLIENTS }, () => newRun(client)));
  const working = runs.map((run, i) => acquireAndRelease(client, run, `${round}-${i}`, until));
  return { told: Promise.all(working).then((told) => told.flat()) };
}

async function setUp(dataDir: string): Promise<CoordinatorProcess> {
  const coordinator = await startCoordinatorProcess({ dataDir });
  await coordinator
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  return coordinator;
}

test(`P8: ${KILLS} kills of the coordinator at random instants under load lose nothing acknowledged`, async () => {
  const seed = Number(process.env.WRIT_SEED ?? Math.floor(Math.random() * 1e9));
  const next = random(seed);
  const dataDir = await makeTestDirectory('killcoordinator');
  let coordinator = await setUp(dataDir);
  let answers = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const stop = new AbortController();
    const working = await load(coordinator, round, stop.signal);
    await afterSome(next, 30, 250);
    stop.abort();
    await coordinator.kill9();
    const told = await working.told;
    answers += told.length;
    coordinator = await startCoordinatorProcess({ dataDir });
    last = coordinator;
    expect(await lostOf(coordinator.client('operator'), told), `seed ${seed}, round ${round}`).toEqual([]);
  }
  expect(answers).toBeGreaterThan(KILLS);
  expect(await coordinator.stop()).toBe(0);
  last = undefined;
}, 600_000);

test(`P8: ${KILLS} kills of Postgres at random instants under load lose nothing acknowledged; the coordinator recovers without a restart`, async () => {
  const seed = Number(process.env.WRIT_SEED ?? Math.floor(Math.random() * 1e9));
  const next = random(seed);
  const dataDir = await makeTestDirectory('killpostgres');
  const coordinator = await setUp(dataDir);
  last = coordinator;
  let answers = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const stop = new AbortController();
    const working = await load(coordinator, round, stop.signal);
    await afterSome(next, 30, 250);
    process.kill(postmasterPid(dataDir), 'SIGKILL');
    stop.abort();
    const told = await working.told;
    answers += told.length;
    await untilReady(coordinator);
    expect(await lostOf(coordinator.client('operator'), told), `seed ${seed}, round ${round}`).toEqual([]);
  }
  expect(answers).toBeGreaterThan(KILLS);
  const { stop } = coordinator;
  expect(await stop()).toBe(0);
  last = undefined;
}, 600_000);

function postmasterPid(dataDir: string): number {
  return Number(readFileSync(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8').split('\n')[0]);
}

async function untilReady(coordinator: CoordinatorProcess): Promise<void> {
  const client = coordinator.client('operator');
  const until = performance.now() + 30_000;
  for (;;) {
    try {
      await client.namespaces.getNamespace({ name: '' });
      client.close();
      return;
    } catch (error) {
      if (performance.now() > until)
        throw new Error(`not ready after a kill:\n${coordinator.log().slice(-5_000)}`, { cause: error });
    }
  }
}

/** A random moment of the load: the instant of the kill is what varies, nothing waits on it. */
function afterSome(next: () => number, least: number, most: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, least + next() * (most - least)));
}
