import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  freshKey,
  granted,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { TIED_MAP } from '../support/tied-map.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: TIED_MAP });
  ({ a } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

let next = 0;
const env = (): string => `env-${++next}`;

describe('what is found and shown', () => {
  const events = async (requestId: string) =>
    (
      await a.api.listEvents(as('auditor'), {
        runId: '',
        leaseId: '',
        resource: '',
        kinds: [],
        requestId,
        afterRevision: 0,
        newestFirst: false,
        page: { size: 10, token: '' },
      })
    ).items;

  test('A1: a run and a release are found by the id of the call', async () => {
    const [creation, release] = [freshKey(), freshKey()];
    const runId = await createRun(a.api, { context: as('runner', { requestId: creation }) });
    const lease = await granted(a.api, runId, [write(`release/${env()}`, 'promote')]);
    await a.api.releaseLease(as('runner', { requestId: release }), { runId, leaseId: lease.leaseId, acquireKey: null });
    expect((await events(creation)).map(({ kind, runId: of }) => [kind, of])).toEqual([['run_created', runId]]);
    expect((await events(release)).map(({ kind, leaseId }) => [kind, leaseId])).toEqual([
      ['lease_ended', lease.leaseId],
    ]);
  });

  test('A1: a target cannot write into the history of a run that it only names', async () => {
    const runId = await createRun(a.api);
    const requestId = freshKey();
    await a.api.checkFence(as('target'), {
      leaseId: 'no such lease',
      presenterRunId: runId,
      writes: [{ resource: 'release/x', action: 'promote', token: 1, observedVersion: null }],
      requestId,
    });
    const [denied] = await eventually(
      () => events(requestId),
      (found) => found.length > 0,
    );
    expect(denied?.runId).toBe('');
    expect(JSON.parse(denied?.body ?? '')).toMatchObject({
      denials: [{ reason: 'unknown_lease', runId: '', presentedRun: runId, requestIds: [requestId, 'test'] }],
    });
  });

  test('a preview for a run that ended before this replica started says run_ended', async () => {
    const runId = await createRun(a.api);
    await a.api.stopRun(as('operator'), { runId, reason: 'a test' });
    const late = await startReplica({ url: pair.database.url });
    try {
      const input = acquireInput(runId, [write(`release/${env()}`, 'promote')]);
      const { value } = await late.api.previewWriteSet(as('runner'), input);
      expect(value.refusal?.kind).toBe('run_ended');
    } finally {
      await late.stop();
    }
  });

  test('a runner is listed its own leases; pages are bounded by bytes, and together complete', async () => {
    const [context, stranger] = [as('runner', { name: `lister-${env()}` }), as('runner', { name: 'stranger' })];
    const runId = await createRun(a.api, { context });
    const entries = (n: number) =>
      Array.from({ length: 256 }, (_, i) => write(`wiki/${env()}/${i}/${'x'.repeat(950)}`, 'edit')).slice(0, n);
    const made = [];
    for (let i = 0; i < 6; i += 1) made.push((await granted(a.api, runId, entries(256), {}, context)).leaseId);
    const found: string[] = [];
    let pages = 0;
    for (let token = ''; pages === 0 || token !== ''; pages += 1) {
      const query = { runId: '', resource: '', states: [], lockDelayed: false, page: { size: 1_000, token } };
      const { value } = await a.api.listLeases(context, query);
      found.push(...value.items.map(({ leaseId }) => leaseId));
      token = value.nextToken;
    }
    expect(pages).toBe(2);
    expect(found).toEqual(made.sort());
    const query = { runId, resource: '', states: [], lockDelayed: false, page: { size: 1_000, token: '' } };
    expect((await a.api.listLeases(stranger, query)).value.items).toEqual([]);
  });

  test('a conflict of live leases names them by the first 8 digits', async () => {
    const tenant = env();
    // Of those that are live, whatever other tests, or another attempt, have left.
    const everybody = { principal: '', resource: '', all: true, reason: 'a test', idempotencyKey: freshKey() };
    await a.api.stopRuns(as('operator'), everybody);
    const ids = [
      (await granted(a.api, await createRun(a.api), [write(`service-token/${tenant}`, 'rotate')])).leaseId,
      (await granted(a.api, await createRun(a.api), [write(`release/${tenant}`, 'promote')])).leaseId,
    ];
    const { value } = await a.api.getConflictMap(as('admin'), { version: 0 });
    const tied = (value?.text ?? '').replace(
      'conflicts: [',
      'conflicts: [ { between: ["service-token/{any}", "release/{any}"], because: "a test" },',
    );
    await expect(putMap(a.api, tied, value?.version ?? 0)).rejects.toMatchObject({
      reason: 'LIVE_CONFLICT',
      details: {
        metadata: {
          pairs: ids
            .sort()
            .map((id) => id.slice(0, 8))
            .join('+'),
          pair_count: '1',
        },
      },
    });
  });

  test('ids that could not be stored are refused by field', async () => {
    const runId = await createRun(a.api);
    const leaseId = 'a\u0000b';
    const refused = { details: { violations: [{ field: expect.stringMatching(/lease_id$/) }] } };
    await expect(a.api.getLease(as('operator'), { leaseId })).rejects.toMatchObject(refused);
    await expect(a.api.revokeLease(as('operator'), { leaseId, reason: 'x' })).rejects.toMatchObject(refused);
    await expect(a.api.releaseLease(as('runner'), { runId, leaseId, acquireKey: null })).rejects.toMatchObject(refused);
    const renewals = [{ leaseId, ttl: null, progressMarker: null }];
    await expect(a.api.renewLeases(as('runner'), { runId, renewals })).rejects.toMatchObject(refused);
  });
});
