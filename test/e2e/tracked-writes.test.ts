import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.js';
import { checkFence, reportWrite } from '../../src/clients/target/index.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { newRun, setEntry } from '../support/workload.js';

// A target and an operator, over gRPC and by the command line, against a coordinator as users run it.

const MAP = `
version: 1
kinds:
  - pattern: item/{name}
    ttl: 60s
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } }
`;

let coordinator: CoordinatorProcess;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-tracked-'));
  coordinator = await startCoordinatorProcess();
  await coordinator.client('admin').conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'test' });
});

afterAll(async () => {
  await coordinator?.stop();
  await rm(directory, { recursive: true, force: true });
});

async function writ(...args: string[]): Promise<{ code: number; text: string }> {
  let text = '';
  const sink = { write: (more: string) => (text += more) };
  const env = { WRIT_ENDPOINT: coordinator.grpc, WRIT_DATA_DIR: coordinator.dataDir };
  const code = await runCli(args, env, { stdout: sink, stderr: sink });
  return { code, text };
}

/** Of one attempt: what is in doubt stays so. */
const fresh = (name: string): string => `item/${name}-${randomUUID()}`;

/** A lease, and a check of it as a target makes it. */
async function letIn(resource: string) {
  const runner = coordinator.client('runner');
  const runId = await newRun(runner);
  const { outcome } = await runner.lease.acquireWriteSet({
    runId,
    entries: [setEntry(resource)],
    idempotencyKey: randomUUID(),
  });
  if (outcome?.$case !== 'lease') throw new Error('no lease');
  const { leaseId, entries } = outcome.value;
  const requestId = randomUUID();
  const token = entries[0]?.fencingToken ?? 0n;
  const target = coordinator.client('target');
  const decision = await checkFence(target, { leaseId, requestId, writes: [{ resource, action: 'set', token }] });
  expect(decision).toMatchObject({ allowed: true, reason: 'ok' });
  const admissionId = decision.writes[0]?.admissionId ?? '';
  expect(admissionId).toMatch(/^[0-9a-f]{32}$/);
  return { target, runId, leaseId, requestId, admissionId, resource };
}

test('a target reports, by the admission and by the check, once and again', async () => {
  const { target, runId, leaseId, requestId, admissionId, resource } = await letIn(fresh('reported'));
  expect((await writ('run', 'get', runId)).text).toContain(admissionId);
  const outcome = { result: 'succeeded', newVersion: '42', changedFields: ['image'] } as const;
  expect(await reportWrite(target, { writes: [{ admissionId, ...outcome }] })).toEqual(['closed']);
  const byCheck = { leaseId, requestId, writes: [{ resource, action: 'set', ...outcome }] };
  expect(await reportWrite(target, byCheck)).toEqual(['already_known']);
  expect((await writ('run', 'stop', runId, '--reason', 'done')).text).toContain('is stopped');
  const why = await writ('why', requestId);
  expect(why.text).toContain('writes reported');
  expect(why.text).toContain(`The write set on ${resource} was let in: succeeded.`);
});

test('a stop that leaves a write open is one when an operator has settled it', async () => {
  const { runId, requestId, admissionId, resource } = await letIn(fresh('doubted'));
  const stopped = await writ('run', 'stop', runId, '--reason', 'enough');
  expect(stopped.text).toContain(`Run ${runId} is stopping`);
  expect(stopped.text).toContain(admissionId);
  expect((await writ('run', 'list', '--state', 'stopping')).text).toContain(runId);
  expect((await writ('why', requestId)).text).toContain('nobody has said what became of it');
  expect((await writ('in-doubt', 'list', '--resource', resource)).text).toContain(admissionId);
  expect((await writ('who', resource)).text).toContain('IN DOUBT');

  const other = await newRun(coordinator.client('runner'));
  const refused = await writ('lease', 'acquire', '--run', other, '--resource', resource);
  expect(refused.code).toBe(3);
  expect(refused.text).toContain('in_doubt');
  expect(refused.text).toMatch(/another run \(\w+\) held item\/doubted-\S+ .* nobody knows since .* \(in doubt\)/);

  const unexplained = await writ('in-doubt', 'settle', admissionId, '--outcome', 'happened');
  expect(unexplained.code).toBe(2);
  const settle = ['in-doubt', 'settle', admissionId, '--reason', 'its log has it'];
  expect((await writ(...settle, '--outcome', 'happened', '--new-version', '43')).text).toContain('Settled.');
  expect((await writ(...settle, '--outcome', 'happened')).text).toContain('nothing was changed');
  const contrary = await writ(...settle, '--outcome', 'did-not-happen');
  expect(contrary).toMatchObject({ code: 3, text: expect.stringContaining('OUTCOME_KNOWN') });
  expect((await writ('why', requestId)).text).toContain('an operator found that it happened');
  expect((await writ('run', 'get', runId)).text).toContain('stopped');
  expect((await writ('in-doubt', 'list', '--resource', resource)).text).toContain('Nothing is in doubt.');
  expect((await writ('lease', 'acquire', '--run', other, '--resource', resource)).code).toBe(0);
});

test('what a release leaves open is told, and the export of all this verifies', async () => {
  const { runId, leaseId, admissionId } = await letIn(fresh('released'));
  const released = await writ('lease', 'release', leaseId, '--run', runId);
  expect(released.text).toContain('Released');
  expect(released.text).toContain(admissionId);
  const file = join(directory, 'log.ndjson');
  expect((await writ('audit', 'export', '--output', file)).code).toBe(0);
  expect(await writ('audit', 'verify', file)).toMatchObject({ code: 0 });
});
