import { afterAll, expect, test } from 'vitest';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { acquire } from '../../src/clients/runner/acquire.js';
import type { Event } from '../../src/gen/writ/v1/audit_service.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { newRun, SIMPLE_MAP } from '../support/workload.js';

/** How many wait. WRIT_CROWD makes it more or fewer, up to the 5,000 of the catalogue. */
const WAITERS = Number(process.env.WRIT_CROWD ?? 400);
/** So many connect at a time in the beginning. */
const JOINING = 50;
const RESOURCE = 'item/crowded';

let coordinator: CoordinatorProcess;
let proxy: TcpProxy | undefined;
const clients: WritClient[] = [];

afterAll(async () => {
  for (const client of clients) client.close();
  await proxy?.stop();
  await coordinator?.stop();
});

/** A client with a connection of its own: grpc-js shares one among clients of one address, and 127/8 has many. */
function newClient(port: number, index: number): WritClient {
  const endpoint = `127.1.${Math.floor(index / 250)}.${1 + (index % 250)}:${port}`;
  const client = connectWrit({ endpoint, token: coordinator.tokens.runner });
  clients.push(client);
  return client;
}

async function eventsOf(kind: string, resource = ''): Promise<Event[]> {
  const events: Event[] = [];
  for (let pageToken = ''; ; ) {
    const answer = await coordinator
      .client('auditor')
      .audit.listEvents({ kinds: [kind], resource, page: { pageSize: 1_000, pageToken } });
    events.push(...answer.events);
    pageToken = answer.nextPageToken;
    if (pageToken === '') return events;
  }
}

/** The most of these moments that lie within so many milliseconds of each other. */
function peakWithin(ms: number, moments: readonly number[]): number {
  const sorted = [...moments].sort((a, b) => a - b);
  let peak = 0;
  for (let first = 0, last = 0; last < sorted.length; last += 1) {
    while ((sorted[last] as number) - (sorted[first] as number) > ms) first += 1;
    peak = Math.max(peak, last - first + 1);
  }
  return peak;
}

test(
  `F5: the coordinator is killed while ${WAITERS} wait, and another serves in its place: no storm, no place lost, the order kept`,
  async () => {
    coordinator = await startCoordinatorProcess();
    await coordinator
      .client('admin')
      .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
    proxy = await TcpProxy.start(coordinator.grpc);
    const own = coordinator.client('runner');
    const runIds: string[] = [];
    for (let made = 0; made <= WAITERS; made += 1) runIds.push(await newRun(own));
    const [holderRun = '', ...waitingRuns] = runIds;
    const resources = [{ resource: RESOURCE, actions: ['set'] }];
    const held = await own.lease.acquireWriteSet({
      runId: holderRun,
      entries: [{ resource: RESOURCE, access: 3, actions: ['set'] }],
      ttl: { seconds: 300n, nanos: 0 },
    });
    if (held.outcome?.$case !== 'lease') throw new Error('nobody holds it');
    const { leaseId } = held.outcome.value;

    const { port } = proxy;
    const waiting: Promise<unknown>[] = [];
    const inPlace: Promise<void>[] = [];
    for (const [index, runId] of waitingRuns.entries()) {
      // They come a few at a time, and lose the coordinator all at once.
      await inPlace[index - JOINING];
      const request = { runId, resources, waitMs: 600_000 };
      inPlace[index] = new Promise((isInPlace) => {
        const lease = acquire(newClient(port, index), { ...request, onWaiting: () => isInPlace() });
        waiting[index] = later(lease.then((lease) => lease.release()));
      });
    }
    const settled = Promise.allSettled(waiting);
    await eventually(
      () => own.namespaces.getNamespace({ name: '' }),
      ({ namespace }) => (namespace?.waitingRequests ?? 0) >= WAITERS,
      50_000 + 20 * WAITERS,
    );
    const queued = await eventsOf('lease_queued');
    // A start takes longer than places are kept on a busy machine: what comes back has been started before.
    const next = await startCoordinatorProcess({ dataDir: coordinator.dataDir });
    proxy.leadTo(next.grpc);
    const before = (await eventsOf('lease_attached')).length;
    proxy.attempts.length = 0;
    await coordinator.kill9();
    coordinator = next;
    await coordinator
      .client('runner')
      .lease.releaseLease({ runId: holderRun, lease: { $case: 'leaseId', value: leaseId } });

    const outcomes = await settled;
    expect(outcomes.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []))).toEqual([]);
    // First come, first served, across the crash; and each was granted once.
    const granted = (await eventsOf('lease_granted', RESOURCE))
      .map((event) => event.leaseId)
      .filter((id) => id !== leaseId);
    expect(granted).toEqual(queued.map((event) => event.leaseId));
    // They came back spread over the time that they have, not in one moment...
    expect(proxy.attempts.length).toBeGreaterThanOrEqual(WAITERS / 2);
    expect(peakWithin(100, proxy.attempts)).toBeLessThan(WAITERS / 2);
    // ...and each coming back was one write at most, besides what keeps places, for all together, every 5 s.
    const after = (await eventsOf('lease_attached')).length - before;
    expect(after).toBeLessThan(2 * WAITERS);
  },
  180_000 + 60 * WAITERS,
);
