import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { checkFence, reportWrite } from '../../src/clients/target/index.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { beginLoad, killPostgres, someMomentOf, untilAnswered } from '../support/kills.js';
import { seeded } from '../support/seeded.js';
import { newRun, setEntry } from '../support/workload.js';

/** How often each is killed. WRIT_KILLS makes it shorter or longer. */
const KILLS = Math.min(Number(process.env.WRIT_KILLS ?? 5), 10);
const TARGETS = 4;

const MAP = `
version: 1
kinds:
  - pattern: item/{name...}
    ttl: 5m
    max_ttl: 5m
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } }
`;

let last: CoordinatorProcess | undefined;

afterAll(async () => {
  await last?.stop();
});

/** A write that a target was told it may make. */
interface Told {
  readonly admissionId: string;
  /** The report was sent; `closed` once it was answered. */
  reported: boolean;
  closed: boolean;
}

interface Held {
  readonly leaseId: string;
  readonly resource: string;
  readonly token: bigint;
}

async function hold(runner: WritClient, resource: string): Promise<Held> {
  const runId = await newRun(runner);
  const { outcome } = await runner.lease.acquireWriteSet({
    runId,
    entries: [setEntry(resource)],
    idempotencyKey: randomUUID(),
  });
  if (outcome?.$case !== 'lease') throw new Error(`no lease on ${resource}`);
  const { leaseId, entries } = outcome.value;
  return { leaseId, resource, token: entries[0]?.fencingToken ?? 0n };
}

/** Checks and reports every other write, as fast as it is answered, until the signal. */
async function work(
  target: WritClient,
  { leaseId, resource, token }: Held,
  signal: AbortSignal,
  answered: () => void,
): Promise<Told[]> {
  const told: Told[] = [];
  for (let i = 0; !signal.aborted && i < 200; i += 1) {
    const write = { resource, action: 'set', token };
    const decision = await checkFence(target, { leaseId, requestId: randomUUID(), writes: [write] });
    const admissionId = decision.writes[0]?.admissionId ?? '';
    if (admissionId === '') continue;
    const one: Told = { admissionId, reported: i % 2 === 0, closed: false };
    told.push(one);
    answered();
    if (!one.reported) continue;
    await reportWrite(target, { writes: [{ admissionId, result: 'succeeded' }] }).then(
      () => {
        one.closed = true;
      },
      () => undefined,
    );
  }
  return told;
}

async function openOn(client: WritClient): Promise<Set<string>> {
  const open = new Set<string>();
  for (let pageToken = ''; ; ) {
    const page = await client.lease.listInDoubt({ includeOpen: true, page: { pageSize: 1_000, pageToken } });
    for (const { admissionId } of page.writes) open.add(admissionId);
    if (page.nextPageToken === '') return open;
    pageToken = page.nextPageToken;
  }
}

test.each(['coordinator', 'Postgres'])(
  'P8, R4: kills of the %s lose no admission and no report that was answered',
  async (who) => {
    const dataDir = await makeTestDirectory(`admissions${who.toLowerCase()}`);
    let coordinator = await startCoordinatorProcess({ dataDir });
    last = coordinator;
    await coordinator
      .client('admin')
      .conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'test' });
    const random = seeded();
    let answers = 0;
    for (let round = 0; round < KILLS; round += 1) {
      const runner = coordinator.client('runner');
      const held = await Promise.all(Array.from({ length: TARGETS }, (_, i) => hold(runner, `item/${round}/${i}`)));
      const stop = new AbortController();
      const target = coordinator.client('target');
      const working = beginLoad(held.map((lease) => (answered) => work(target, lease, stop.signal, answered)));
      await someMomentOf(working, random);
      if (who === 'coordinator') {
        stop.abort();
        await coordinator.kill9();
        coordinator = await startCoordinatorProcess({ dataDir });
        last = coordinator;
      } else {
        killPostgres(dataDir);
        stop.abort();
      }
      const told = await working.told;
      answers += told.length;
      const operator = coordinator.client('operator');
      const open = await untilAnswered(coordinator, () => openOn(operator));
      const lost = told.filter(({ admissionId, reported }) => !reported && !open.has(admissionId));
      const revived = told.filter(({ admissionId, closed }) => closed && open.has(admissionId));
      expect({ lost, revived }, `seed ${random.seed}, round ${round}`).toEqual({ lost: [], revived: [] });
    }
    expect(answers).toBeGreaterThanOrEqual(KILLS);
    expect(await coordinator.stop()).toBe(0);
    last = undefined;
  },
  300_000,
);
