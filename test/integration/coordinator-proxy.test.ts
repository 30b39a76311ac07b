import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { transportOf } from '../../src/clients/common/channel.js';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { askFence } from '../../src/clients/target/check-stream.js';
import { CheckFenceRequest } from '../../src/gen/writ/v1/fence_service.js';
import { CoordinatorProxy } from '../../src/rehearsal/coordinator-proxy.js';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** What the suite puts between a service and the coordinator. */

let coordinator: CoordinatorProcess;
let proxy: CoordinatorProxy;
let listen: string;
const clients: WritClient[] = [];

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  listen = `127.0.0.1:${await freePort()}`;
  proxy = await CoordinatorProxy.start({ listen, upstream: transportOf(coordinator.grpc, {}) });
});

afterAll(async () => {
  for (const client of clients) client.close();
  await proxy?.stop();
  await coordinator?.stop();
});

function through(role: keyof CoordinatorProcess['tokens']): WritClient {
  const client = connectWrit({ endpoint: listen, token: coordinator.tokens[role] });
  clients.push(client);
  return client;
}

const WRITE = { resource: 'doc/a', action: 'edit', fencingToken: 1n };

const check = (client: WritClient, leaseId: string, options = {}) =>
  client.fence.checkFence({ leaseId, writes: [WRITE] }, options);

describe('the proxy', () => {
  it('passes on who calls, what is answered, and what is wrong, in every detail', async () => {
    const { namespaces } = await through('admin').namespaces.listNamespaces({});
    expect(namespaces.map(({ name }) => name)).toEqual(['default']);
    await expect(through('operator').run.getRun({ runId: 'f'.repeat(32) })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      reason: 'RUN_NOT_FOUND',
    });
    await expect(through('runner').conflictMap.putConflictMap({ document: 'x' })).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'ROLE_REQUIRED',
    });
    const revisions: bigint[] = [];
    for await (const { events } of through('auditor').audit.exportEvents({}))
      revisions.push(...events.map(({ revision }) => revision));
    expect(revisions[0]).toBe(1n);
  });

  it('keeps the verdict that it is asked to keep, until it is let go, and no other', async () => {
    const target = through('target');
    const held = proxy.holdVerdict(({ leaseId }) => leaseId === 'one');
    let isAnswered = false;
    const one = check(target, 'one').then((answer) => {
      isAnswered = true;
      return answer;
    });
    await held.reached;
    // On the same connection, and after the other was asked.
    expect((await check(target, 'two')).allowed).toBe(false);
    expect(isAnswered).toBe(false);
    held.letGo();
    expect((await one).results).toHaveLength(1);
    expect((await check(target, 'one')).allowed).toBe(false);
  });

  it('keeps one of the verdicts of a stream, and no other', async () => {
    const target = through('target');
    const held = proxy.holdVerdict(({ leaseId }) => leaseId === 'one');
    const ask = (leaseId: string) =>
      askFence(target, CheckFenceRequest.fromPartial({ leaseId, writes: [WRITE] }), { timeoutMs: 120_000 });
    let isAnswered = false;
    const [one, two] = [ask('one'), ask('two')];
    void one.then(() => {
      isAnswered = true;
    });
    await held.reached;
    expect((await two).results).toHaveLength(1);
    expect((await ask('three')).results).toHaveLength(1);
    expect(isAnswered).toBe(false);
    held.letGo();
    expect((await one).results).toHaveLength(1);
  });

  it('takes the coordinator away, and gives it back', async () => {
    const target = through('target');
    expect((await check(target, 'one')).allowed).toBe(false);
    await proxy.cut();
    await proxy.cut();
    await expect(check(target, 'one', { timeoutMs: 3_000 })).rejects.toMatchObject({ retryable: true });
    await proxy.mend();
    await proxy.mend();
    expect((await check(target, 'one', { timeoutMs: 20_000 })).allowed).toBe(false);
  });
});
