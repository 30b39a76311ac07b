import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { asserted } from '../support/hostile-maps.js';
import { newRun, SIMPLE_MAP, setEntry } from '../support/workload.js';

let coordinator: CoordinatorProcess;

afterEach(() => coordinator?.kill9());

test('a coordinator as it is shipped answers checks beside a costly map, and stops with one in flight', async () => {
  coordinator = await startCoordinatorProcess({ env: { WRIT_SHUTDOWN_DEADLINE: '5s' } });
  const [admin, runner, target] = (['admin', 'runner', 'target'] as const).map((role) => coordinator.client(role));
  if (admin === undefined || runner === undefined || target === undefined) throw new Error('three clients');
  await admin.conflictMap.putConflictMap({ document: SIMPLE_MAP, reason: 'a test' });
  const runId = await newRun(runner);
  const { outcome } = await runner.lease.acquireWriteSet({
    runId,
    entries: [setEntry('item/a')],
    idempotencyKey: randomUUID(),
  });
  if (outcome?.$case !== 'lease') throw new Error('not granted');
  const { leaseId, entries } = outcome.value;
  const writes = [{ resource: 'item/a', action: 'set', fencingToken: entries[0]?.fencingToken ?? 0n }];

  let going = true;
  const costly = admin.conflictMap.validateConflictMap({ document: asserted }, { timeoutMs: 60_000 }).then(
    () => ({ reason: 'answered' }),
    (error: { reason: string }) => error,
  );
  void costly.finally(() => {
    going = false;
  });
  let answered = 0;
  while (going) {
    const { allowed } = await target.fence.checkFence({ leaseId, presenterRunId: runId, writes });
    expect(allowed).toBe(true);
    expect((await fetch(`http://${coordinator.http}/readyz`)).status).toBe(200);
    if (going) answered += 1;
  }
  expect(answered).toBeGreaterThan(20);
  expect(await costly).toMatchObject({ reason: 'MAP_TOO_COSTLY' });

  // The process was replaced: the next document is read, also by the one who brought the last.
  expect(await admin.conflictMap.validateConflictMap({ document: SIMPLE_MAP })).toMatchObject({ valid: true });

  // Of one principal four calls are in progress at most; the others are refused, and none of them keeps a stop waiting.
  const several = Array.from({ length: 8 }, () =>
    admin.conflictMap.validateConflictMap({ document: asserted }).then(
      () => 'answered',
      (error: { reason: string }) => error.reason,
    ),
  );
  const refused = await Promise.race(several);
  expect(refused).toBe('MAP_QUEUE_FULL');
  await expect.poll(metrics).toMatch(/^writ_rpcs_in_flight [1-9]/m);
  expect(await coordinator.stop()).toBe(0);
  expect(await Promise.all(several)).not.toContain('answered');
});

async function metrics(): Promise<string> {
  const headers = { authorization: `Bearer ${coordinator.tokens.admin}` };
  return (await fetch(`http://${coordinator.http}/metrics`, { headers })).text();
}
