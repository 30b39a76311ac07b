import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  acquireInput,
  as,
  createRun,
  freshKey,
  granted,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/** What calls say by name. A caller may name a resource by its path or by an alias; what is neither is refused, lest nobody be meant by it. */
const MAP = `
version: 1
kinds:
  - { pattern: "service/{name}", ttl: 60s, actions: { deploy: { concurrency: lease, change_class: shared_pointer, tracked: true } } }
aliases: [ { from: "arn:aws:ecs:{region}:{account}:service/{name}", to: "service/{name}" } ]
`;
const arn = (name: string): string => `arn:aws:ecs:eu-west-1:12:service/${name}`;
let next = 0;
const fresh = (name: string): string => `${name}-${++next}`;
const PAGE = { size: 0, token: '' };

let database: TestDatabase;
let replica: TestReplica;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  await putMap(replica.api, MAP);
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

const stopRuns = (resource: string) =>
  replica.api.stopRuns(as('operator'), {
    principal: '',
    resource,
    all: false,
    reason: 'an incident',
    idempotencyKey: freshKey(),
  });

const listLeases = async (resource: string, state: 'active' | 'ended') => {
  const query = { runId: '', resource, states: [state], lockDelayed: false, page: PAGE };
  return (await replica.api.listLeases(as('operator'), query)).value.items.map(({ leaseId }) => leaseId);
};

const listInDoubt = async (resource: string) => {
  const query = { runId: '', resource, includeOpen: true, page: PAGE };
  return (await replica.api.listInDoubt(as('operator'), query)).value.items.map((found) => found.resource);
};

const listFreezes = async (resource: string) =>
  (await replica.api.listFreezes(as('operator'), { resource, page: PAGE })).value.items.map(({ pattern }) => pattern);

const findBlockers = async (resource: string) =>
  (await replica.api.findBlockers(as('operator'), { resource })).value.blockers.map((found) => found.resource);

describe('an alias', () => {
  it('finds what its path finds, wherever a resource can be asked for', async () => {
    const web = fresh('web');
    const lease = await granted(replica.api, await createRun(replica.api), [write(arn(web), 'deploy')]);
    await replica.api.checkFence(as('target', { requestId: 'admits-web' }), {
      leaseId: lease.leaseId,
      presenterRunId: '',
      requestId: 'admits-web',
      writes: [{ resource: arn(web), action: 'deploy', token: lease.entries[0]?.token ?? 0, observedVersion: null }],
    });
    await replica.api.freeze(as('operator'), {
      pattern: `service/${web}`,
      scope: 'subtree',
      deniesChecks: false,
      until: null,
      reason: 'a test',
    });
    expect(await listLeases(arn(web), 'active')).toEqual([lease.leaseId]);
    expect(await listInDoubt(arn(web))).toEqual([`service/${web}`]);
    expect(await listFreezes(arn(web))).toEqual([`service/${web}`]);
    expect(await findBlockers(arn(web))).toEqual([`service/${web}`]);
    await replica.api.releaseLease(as('runner'), { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null });
    expect(await listLeases(arn(web), 'ended')).toEqual([lease.leaseId]);
  });

  it('StopRuns: stops the runs that hold it (R4)', async () => {
    const [holder, other] = [await createRun(replica.api), await createRun(replica.api)];
    const api = fresh('api');
    await granted(replica.api, holder, [write(`service/${api}`, 'deploy')]);
    await granted(replica.api, other, [write(`service/${fresh('db')}`, 'deploy')]);
    const stopped = await stopRuns(arn(api));
    expect(stopped.value.runs.map(({ run }) => run.runId)).toEqual([holder]);
    const late = await replica.api.acquireWriteSet(
      as('runner'),
      acquireInput(holder, [write(`service/${fresh('x')}`, 'deploy')]),
    );
    expect(late.value).toMatchObject({ kind: 'refusal', refusal: { kind: 'run_ended' } });
  });
});

describe('a namespace', () => {
  it('whose name is none is refused by the field that has it', async () => {
    const wrong = { details: { violations: [{ field: 'name' }] } };
    await expect(replica.api.getNamespace(as('admin'), { name: 'Shop' })).rejects.toMatchObject(wrong);
    await expect(replica.api.createNamespace(as('admin'), { name: '1-shop' })).rejects.toMatchObject(wrong);
  });
});

describe('what is neither a path nor an alias', () => {
  it.each([
    ['StopRuns', stopRuns],
    ['ListLeases', (resource: string) => listLeases(resource, 'active')],
    ['ListLeases of ended ones', (resource: string) => listLeases(resource, 'ended')],
    ['ListInDoubt', listInDoubt],
    ['ListFreezes', listFreezes],
    ['ListWaiters', (resource: string) => replica.api.listWaiters(as('operator'), { runId: '', resource, page: PAGE })],
    ['FindBlockers', findBlockers],
  ])('%s: is refused with the field and the reason, and finds nothing', async (_, call) => {
    for (const resource of ['service//web', '/service/web', 'service/../web', 'service/web/']) {
      await expect(call(resource)).rejects.toMatchObject({
        reason: 'INVALID_ARGUMENT',
        details: { violations: [{ field: 'resource', description: expect.stringContaining('segment') }] },
      });
    }
  });
});
