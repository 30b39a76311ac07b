import { randomUUID } from 'node:crypto';
import type { WritClient } from '../../src/clients/common/connect.js';
import { Access, LeaseState, Scope } from '../../src/gen/writ/v1/types.js';

/** One kind with a lease action and one optimistic action, over paths that tests make up. */
export const SIMPLE_MAP = `
version: 1
kinds:
  - pattern: item/{name...}
    ttl: 60s
    max_ttl: 5m
    max_hold: 30m
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer }
      patch: { access: write, change_class: derived }
`;

const inOneHour = () => ({ seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600), nanos: 0 });

export async function newRun(client: WritClient): Promise<string> {
  const { run } = await client.run.createRun({
    purpose: 'a test',
    allowed: [{ pattern: '{all...}', actions: ['*'] }],
    authorityEndsAt: inOneHour(),
    idempotencyKey: randomUUID(),
  });
  return run?.runId ?? '';
}

export const setEntry = (resource: string) => ({
  resource,
  access: Access.ACCESS_WRITE,
  scope: Scope.SCOPE_EXACT,
  actions: ['set'],
});

/** What a client was told, to be held against what is there after the crash. */
export interface Acknowledged {
  readonly runId: string;
  readonly key: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly token: bigint;
  /** Of what was added to it by an amendment; null: nothing was, as far as its client was told. */
  addedToken: bigint | null;
  released: boolean;
  /** A release was sent and its answer never came: either is right. */
  doubtful: boolean;
}

/** Acquires and releases as fast as it is answered, until the signal; remembers everything acknowledged. */
export async function acquireAndRelease(
  client: WritClient,
  runId: string,
  prefix: string,
  signal: AbortSignal,
  answered: () => void,
): Promise<Acknowledged[]> {
  const told: Acknowledged[] = [];
  for (let i = 0; !signal.aborted; i += 1) {
    const key = randomUUID();
    const resource = `item/${prefix}/${i}`;
    try {
      const { outcome } = await client.lease.acquireWriteSet({
        runId,
        entries: [setEntry(resource)],
        idempotencyKey: key,
      });
      if (outcome?.$case !== 'lease') continue;
      const { leaseId, entries } = outcome.value;
      const one: Acknowledged = {
        runId,
        key,
        leaseId,
        resource,
        token: entries[0]?.fencingToken ?? 0n,
        addedToken: null,
        released: false,
        doubtful: false,
      };
      told.push(one);
      answered();
      if (i % 3 === 0) one.addedToken = await addedToken(client, runId, leaseId, `${resource}/added`);
      if (i % 2 === 0) continue;
      one.doubtful = true;
      await client.lease.releaseLease({ runId, lease: { $case: 'leaseId', value: leaseId } });
      one.released = true;
      one.doubtful = false;
    } catch {
      if (signal.aborted) return told;
    }
  }
  return told;
}

async function addedToken(client: WritClient, runId: string, leaseId: string, resource: string) {
  const { outcome } = await client.lease.amendWriteSet({ runId, leaseId, add: [setEntry(resource)] });
  return outcome?.$case === 'lease' ? (outcome.value.entries[1]?.fencingToken ?? 0n) : null;
}

/** What is not as it was acknowledged; empty when nothing was lost (P8). */
export async function lostOf(operator: WritClient, told: readonly Acknowledged[]): Promise<string[]> {
  const lost: string[] = [];
  for (const one of told) {
    const { lease } = await operator.lease.getLease({ leaseId: one.leaseId });
    const [token, added] = [0, 1].map((at) => lease?.entries[at]?.fencingToken);
    const expected = one.released ? LeaseState.LEASE_STATE_ENDED : LeaseState.LEASE_STATE_ACTIVE;
    const stateOk = one.doubtful || lease?.state === expected;
    const tokensOk = token === one.token && (one.addedToken === null || added === one.addedToken);
    if (!stateOk || !tokensOk)
      lost.push(
        `${one.resource}: acknowledged ${one.released ? 'released' : 'held'} ${one.token} ${one.addedToken}, found ${lease?.state} ${token} ${added}`,
      );
  }
  return lost;
}
