import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  granted,
  leaseOf,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { later } from '../support/later.js';
import { TIED_MAP } from '../support/tied-map.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: TIED_MAP });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

let next = 0;
const env = (): string => `env-${++next}`;

describe('waiting, over two replicas', () => {
  test('P9: a waiting request on one replica is granted when the holder releases on the other', async () => {
    const resource = `release/${env()}`;
    const holder = await granted(a.api, await createRun(a.api), [write(resource, 'promote')]);
    const waiting = later(
      b.api.acquireWriteSet(
        as('runner'),
        acquireInput(await createRun(b.api), [write(resource, 'promote')], { wait: 30 * SECOND }),
      ),
    );
    await eventually(
      async () =>
        (
          await a.api.listLeases(as('operator'), {
            runId: '',
            resource,
            states: ['waiting'],
            lockDelayed: false,
            page: { size: 10, token: '' },
          })
        ).value.items.length,
      (n) => n === 1,
    );
    await a.api.releaseLease(as('runner'), { runId: holder.runId, leaseId: holder.leaseId, acquireKey: null });
    const lease = leaseOf((await waiting).value);
    expect(lease.entries[0]?.token).toBeGreaterThan(holder.entries[0]?.token ?? 0);
    expect(lease.claimBy).toBeNull();
  });

  test('a unary wait answers `waiting` before its deadline, and the same key resumes the place on the other replica', async () => {
    const resource = `release/${env()}`;
    const holder = await granted(a.api, await createRun(a.api), [write(resource, 'promote')]);
    const input = acquireInput(await createRun(a.api), [write(resource, 'promote')], { wait: 30 * SECOND });
    const first = (await a.api.acquireWriteSet(as('runner', { deadlineMs: 1_200 }), input)).value;
    expect(first).toMatchObject({ kind: 'waiting', waiting: { place: 1 } });
    const second = later(b.api.acquireWriteSet(as('runner'), input));
    await a.api.releaseLease(as('runner'), { runId: holder.runId, leaseId: holder.leaseId, acquireKey: null });
    expect(leaseOf((await second).value).leaseId).toBe(
      (first as Extract<typeof first, { kind: 'waiting' }>).waiting.leaseId,
    );
  });

  test('P9: a deadlock is refused at once with its cycle', async () => {
    const [one, two] = [`release/${env()}`, `release/${env()}`];
    const [runA, runB] = [await createRun(a.api), await createRun(b.api)];
    const [leaseA] = [
      await granted(a.api, runA, [write(one, 'promote')]),
      await granted(b.api, runB, [write(two, 'promote')]),
    ];
    const waiting = later(
      a.api.acquireWriteSet(as('runner'), acquireInput(runA, [write(two, 'promote')], { wait: 20 * SECOND })),
    );
    await eventually(
      async () =>
        (
          await b.api.listLeases(as('operator'), {
            runId: runA,
            resource: '',
            states: ['waiting'],
            lockDelayed: false,
            page: { size: 10, token: '' },
          })
        ).value.items.length,
      (n) => n === 1,
    );
    const { value } = await b.api.acquireWriteSet(
      as('runner'),
      acquireInput(runB, [write(one, 'promote')], { wait: 20 * SECOND }),
    );
    expect(value).toMatchObject({ kind: 'refusal', refusal: { kind: 'deadlock', cycle: [runB, runA, runB] } });
    await a.api.stopRun(as('operator'), { runId: runA, reason: 'a test' });
    expect((await waiting).value).toMatchObject({ kind: 'refusal', refusal: { kind: 'run_ended' } });
    expect((await check(b.api, leaseA)).reason).toBe('run_stopped');
  });

  test('F14: a stopped run is granted nothing, not even what it waited for', async () => {
    const run = await createRun(a.api);
    await b.api.stopRun(as('operator'), { runId: run, reason: 'a test' });
    const { value } = await a.api.acquireWriteSet(
      as('runner'),
      acquireInput(run, [write(`release/${env()}`, 'promote')]),
    );
    expect(value).toMatchObject({ kind: 'refusal', refusal: { kind: 'run_ended' } });
  });
});
