import { afterAll, expect, test } from 'vitest';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { beginLoad, killPostgres, type Load, someMomentOf, untilAnswered } from '../support/kills.js';
import { seeded } from '../support/seeded.js';
import { type Acknowledged, acquireAndRelease, lostOf, newRun, SIMPLE_MAP } from '../support/workload.js';

/** How often each is killed; the sum is the hundred that is promised. WRIT_KILLS makes it shorter or longer. */
const KILLS = Number(process.env.WRIT_KILLS ?? 50);
const CLIENTS = 8;

let last: CoordinatorProcess | undefined;

afterAll(async () => {
  await last?.stop();
});

/** Clients that work until the signal, each with a run of its own that is there before the first kill can come. */
async function load(coordinator: CoordinatorProcess, round: number, until: AbortSignal): Promise<Load<Acknowledged>> {
  const client = coordinator.client('runner');
  const runs = await Promise.all(Array.from({ length: CLIENTS }, () => newRun(client)));
  return beginLoad(
    runs.map((run, i) => (answered) => acquireAndRelease(client, run, `${round}-${i}`, until, answered)),
  );
}

async function untilReady(coordinator: CoordinatorProcess): Promise<void> {
  const client = coordinator.client('operator');
  await untilAnswered(coordinator, () => client.namespaces.getNamespace({ name: '' }));
  client.close();
}

async function setUp(dataDir: string): Promise<CoordinatorProcess> {
  const coordinator = await startCoordinatorProcess({ dataDir });
  await coordinator
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  return coordinator;
}

test(`P8: ${KILLS} kills of the coordinator at random instants under load lose nothing acknowledged`, async () => {
  const random = seeded();
  const dataDir = await makeTestDirectory('killcoordinator');
  let coordinator = await setUp(dataDir);
  let answers = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const stop = new AbortController();
    const working = await load(coordinator, round, stop.signal);
    await someMomentOf(working, random);
    stop.abort();
    await coordinator.kill9();
    const told = await working.told;
    answers += told.length;
    coordinator = await startCoordinatorProcess({ dataDir });
    last = coordinator;
    expect(await lostOf(coordinator.client('operator'), told), `seed ${random.seed}, round ${round}`).toEqual([]);
  }
  expect(answers).toBeGreaterThanOrEqual(KILLS);
  expect(await coordinator.stop()).toBe(0);
  last = undefined;
}, 600_000);

test(`P8: ${KILLS} kills of Postgres at random instants under load lose nothing acknowledged; the coordinator recovers without a restart`, async () => {
  const random = seeded();
  const dataDir = await makeTestDirectory('killpostgres');
  const coordinator = await setUp(dataDir);
  last = coordinator;
  let answers = 0;
  for (let round = 0; round < KILLS; round += 1) {
    const stop = new AbortController();
    const working = await load(coordinator, round, stop.signal);
    await someMomentOf(working, random);
    killPostgres(dataDir);
    stop.abort();
    const told = await working.told;
    answers += told.length;
    await untilReady(coordinator);
    expect(await lostOf(coordinator.client('operator'), told), `seed ${random.seed}, round ${round}`).toEqual([]);
  }
  expect(answers).toBeGreaterThanOrEqual(KILLS);
  const { stop } = coordinator;
  expect(await stop()).toBe(0);
  last = undefined;
}, 600_000);
