import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { RehearsalOutcome } from '../../src/gen/writ/v1/conflict_map_service.js';
import { Access, RefusalKind } from '../../src/gen/writ/v1/types.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** The calls about rehearsals, over the wire, and over the death of the coordinator (C13). */

const MAP = `version: 1
kinds:
  - pattern: doc/{id}
    require_rehearsal: true
    actions: { replace: { access: write, concurrency: lease, change_class: shared_document } }
  - pattern: owned/{id}
    require_rehearsal: true
    owner_service: [another]
    actions: { replace: { access: write, concurrency: lease, change_class: shared_document } }
  - pattern: free/{id}
    actions: { replace: { access: write, concurrency: lease, change_class: shared_document } }
`;

const PASSED = [
  'conflict',
  'undeclared_write',
  'coordinator_down',
  'stopped_run',
  'late_write',
  'write_past_open:verdict',
].map((name) => ({ name, outcome: RehearsalOutcome.REHEARSAL_OUTCOME_PASSED }));

const RESULT = {
  resource: 'doc/a',
  targetName: 'doc-api',
  suiteVersion: '1',
  resultDigest: 'd'.repeat(64),
  cases: PASSED,
};

let coordinator: CoordinatorProcess;
let runId: string;

/** One of which no kind was ever rehearsed. */
async function begin(): Promise<void> {
  coordinator = await startCoordinatorProcess();
  await coordinator.client('admin').conflictMap.putConflictMap({ document: MAP });
  const { run } = await coordinator.client('runner').run.createRun({
    purpose: 'a test',
    allowed: [{ pattern: '{any...}', actions: ['*'] }],
    authorityEndsAt: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600), nanos: 0 },
  });
  runId = run?.runId ?? '';
}

beforeAll(begin);

afterAll(() => coordinator?.stop());

/** How an acquire comes out; what was granted is given back. */
async function acquired(resource: string): Promise<string> {
  const runner = coordinator.client('runner');
  const { outcome } = await runner.lease.acquireWriteSet({
    runId,
    entries: [{ resource, access: Access.ACCESS_WRITE, actions: ['replace'] }],
  });
  if (outcome?.$case === 'refusal') return RefusalKind[outcome.value.kind];
  if (outcome?.$case !== 'lease') return 'waiting';
  await runner.lease.releaseLease({ runId, lease: { $case: 'leaseId', value: outcome.value.leaseId } });
  return 'lease';
}

async function fieldsOf(call: Promise<unknown>): Promise<string[]> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof WritError)) throw new Error('it was accepted');
  return error.violations.map(({ field }) => field);
}

const target = (): WritClient['conflictMap'] => coordinator.client('target').conflictMap;

describe('rehearsals', () => {
  let attempts = 0;

  it('are begun and recorded by a target, and kept when the coordinator dies', async () => {
    attempts += 1;
    if (attempts > 1) {
      await coordinator.stop();
      await begin();
    }
    expect(await acquired('doc/a')).toBe('REFUSAL_KIND_REHEARSAL_REQUIRED');
    await target().beginRehearsal({ resources: ['doc/a'], runIds: [runId], within: { seconds: 600n, nanos: 0 } });
    expect(await acquired('doc/a')).toBe('lease');
    expect(await acquired('doc/b')).toBe('REFUSAL_KIND_REHEARSAL_REQUIRED');

    coordinator = await restarted();
    expect(await acquired('doc/a')).toBe('lease');
    const { rehearsal } = await target().recordRehearsal(RESULT);
    expect(rehearsal).toMatchObject({
      kind: 'doc/{id}',
      required: true,
      counts: true,
      whyNot: '',
      recordedBy: 'target',
    });
    expect(await acquired('doc/b')).toBe('lease');

    coordinator = await restarted();
    expect(await acquired('doc/b')).toBe('lease');
    const { rehearsals } = await coordinator.client('auditor').conflictMap.listRehearsals({});
    expect(rehearsals.map(({ kind, counts, whyNot, targetName }) => [kind, counts, whyNot, targetName])).toEqual([
      ['doc/{id}', true, '', 'doc-api'],
      ['owned/{id}', false, 'no rehearsal of it was ever recorded', ''],
    ]);
    expect(rehearsals[0]?.cases).toEqual(PASSED);
    const { events } = await coordinator.client('auditor').audit.listEvents({
      kinds: ['rehearsal_begun', 'rehearsal_recorded'],
    });
    expect(events.map(({ kind, actor, resources }) => [kind, actor, resources])).toEqual([
      ['rehearsal_begun', 'target', ['doc/a']],
      ['rehearsal_recorded', 'target', ['doc/a']],
    ]);
  });

  it('are listed in pages', async () => {
    const auditor = coordinator.client('auditor').conflictMap;
    const first = await auditor.listRehearsals({ page: { pageSize: 1 } });
    expect(first.rehearsals.map(({ kind }) => kind)).toEqual(['doc/{id}']);
    const second = await auditor.listRehearsals({ page: { pageSize: 1, pageToken: first.nextPageToken } });
    expect(second.rehearsals.map(({ kind }) => kind)).toEqual(['owned/{id}']);
    expect(second.nextPageToken).toBe('');
  });

  it('are nobody else’s to record than those of the kind, and of no runner at all', async () => {
    await expect(target().recordRehearsal({ ...RESULT, resource: 'owned/a' })).rejects.toMatchObject({
      reason: 'NOT_OWNER_SERVICE',
    });
    await expect(target().beginRehearsal({ resources: ['owned/a'], runIds: [runId] })).rejects.toMatchObject({
      reason: 'NOT_OWNER_SERVICE',
    });
    await expect(coordinator.client('runner').conflictMap.recordRehearsal(RESULT)).rejects.toMatchObject({
      reason: 'ROLE_REQUIRED',
    });
    const { rehearsal } = await coordinator
      .client('admin')
      .conflictMap.recordRehearsal({ ...RESULT, resource: 'owned/a' });
    expect(rehearsal?.counts).toBe(true);
  });

  it('say of each field what is wrong', async () => {
    const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });
    expect(
      await fieldsOf(
        target().recordRehearsal({
          ...RESULT,
          resource: '',
          targetName: 'two\nlines',
          suiteVersion: '',
          resultDigest: 'D'.repeat(64),
          cases: [{ name: 'Conflict', outcome: RehearsalOutcome.REHEARSAL_OUTCOME_PASSED }, ...PASSED, ...PASSED],
          validFor: seconds(60),
        }),
      ),
    ).toEqual([
      'resource',
      'target_name',
      'suite_version',
      'result_digest',
      'cases[0].name',
      ...PASSED.map((_, index) => `cases[${index + 1 + PASSED.length}].name`),
      'valid_for',
    ]);
    expect(await fieldsOf(target().recordRehearsal({ ...RESULT, cases: [{ name: 'conflict' }] }))).toEqual([
      'cases[0].outcome',
    ]);
    expect(await fieldsOf(target().recordRehearsal({ ...RESULT, cases: [] }))).toEqual(['cases']);
    expect(await fieldsOf(target().recordRehearsal({ ...RESULT, resource: 'nowhere/a' }))).toEqual(['resource']);
    expect(
      await fieldsOf(target().beginRehearsal({ resources: ['', 'doc/a'], runIds: ['me'], within: seconds(7_200) })),
    ).toEqual(['resources[0]', 'run_ids[0]', 'within']);
    expect(await fieldsOf(target().beginRehearsal({}))).toEqual(['resources', 'run_ids']);
    await expect(target().beginRehearsal({ resources: ['doc/a'], runIds: ['f'.repeat(32)] })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });
});

async function restarted(): Promise<CoordinatorProcess> {
  const { dataDir } = coordinator;
  await coordinator.kill9();
  return startCoordinatorProcess({ dataDir });
}
