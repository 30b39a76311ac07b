import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { decodeJwt, type JSONWebKeySet } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';
import { Access, type Lease } from '../../src/gen/writ/v1/types.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { faketimeMissing, makeSteppedClock, type SteppedClock } from '../support/faketime.js';
import { later } from '../support/later.js';
import { newRun } from '../support/workload.js';

/**
 * F12 with credentials: the wall clocks of a replica and of a target that verifies by itself are stepped by a second and
 * by a minute, while they run. A credential that is good survives it wherever 5 s of tolerance are meant to cover it, and
 * no step gives a lease or a credential a second: nothing is accepted that was sent when it was over.
 *
 * The database and these tests are on one machine and have one clock, so "over" is exact: what was sent at or after an end
 * was decided after it, and what was answered before an end was decided before it.
 */

const MAP = `
version: 1
profiles: { any: { ttl: 60s, max_ttl: 5m, actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } } } }
kinds:
  - { pattern: "loc/{name}", extends: any, validation: local }
  - { pattern: "item/{name}", extends: any }
`;
/** With 5 s of tolerance and 1 s of skew a credential of such a lease lives about 4 s. */
const TTL_SECONDS = 10;
const VERIFIER = fileURLToPath(new URL('../support/offline-verifier.mjs', import.meta.url));

let steady: CoordinatorProcess;
let stepped: CoordinatorProcess;
let clock: SteppedClock;
const verifiers: ChildProcess[] = [];

if (faketimeMissing !== '') console.warn(`skipped: clock steps: ${faketimeMissing}`);

describe.skipIf(faketimeMissing !== '')('clock steps (F12)', () => {
  beforeAll(async () => {
    steady = await startCoordinatorProcess({ env: { WRIT_ISSUER: 'https://writ.test' } });
    clock = await makeSteppedClock(join(steady.dataDir, 'clock'));
    stepped = await startCoordinatorProcess({
      dataDir: steady.dataDir,
      env: { WRIT_ISSUER: 'https://writ.test', ...clock.env },
    });
    await steady.client('admin').conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'a test' });
  });

  afterAll(async () => {
    for (const one of verifiers) one.kill();
    await stepped?.stop();
    await steady?.stop();
  });

  describe.each([1, -1, 60, -60])('of %i s on a replica', (offset) => {
    it('move no end of a lease or a credential, which go on being good until then', async () => {
      await clock.set(0);
      const before = Date.now();
      const { lease, credential } = await hold(stepped, `item/replica${offset}-${randomUUID()}`);
      const { iat = 0, exp = 0 } = decodeJwt(credential);
      expect(iat).toBeGreaterThanOrEqual(Math.floor(before / 1_000));
      expect(iat).toBeLessThanOrEqual(Date.now() / 1_000);
      await clock.set(offset);
      for (const replica of [stepped, steady]) {
        await watch(
          () => check(replica, { credential }, lease),
          (reason) => reason === FenceReason.FENCE_REASON_OK,
          exp * 1_000,
        );
      }
      const renewing = await stepped.client('runner').lease.renewLeases({
        runId: lease.runId,
        renewals: [{ leaseId: lease.leaseId, ttl: { seconds: 7n, nanos: 0 } }],
      });
      const renewed = renewing.results[0]?.outcome;
      if (renewed?.$case !== 'lease') throw new Error('not renewed');
      const end = endOf(renewed.value);
      expect(end).toBeLessThanOrEqual(Math.max(endOf(lease), Date.now() + 7_000));
      for (const replica of [stepped, steady]) {
        await watch(
          () => check(replica, { leaseId: lease.leaseId }, lease),
          (reason) => reason === FenceReason.FENCE_REASON_OK,
          end,
        );
      }
    });

    it('issue credentials by the database’s clock', async () => {
      await clock.set(offset);
      const before = Date.now();
      const { lease, credential } = await hold(stepped, `item/issued${offset}-${randomUUID()}`);
      const { iat = 0, exp = 0 } = decodeJwt(credential);
      expect(iat).toBeGreaterThanOrEqual(Math.floor(before / 1_000));
      expect(iat).toBeLessThanOrEqual(Date.now() / 1_000);
      expect(exp * 1_000).toBeLessThanOrEqual(endOf(lease) - 6_000);
      expect(await check(steady, { credential }, lease)).toBe(FenceReason.FENCE_REASON_OK);
    });
  });

  // Each has a clock and a process of its own.
  describe.concurrent.each([1, -1, 60, -60, -8])('of %i s on a target that verifies by itself', (offset) => {
    it('let it accept nothing that is over, and refuse nothing that is good unless its clock is far ahead', async () => {
      const own = await makeSteppedClock(join(steady.dataDir, `clock-of-verifier${offset}`));
      const verify = await startVerifier(own, { keys: await publishedKeys() });
      const { lease, credential } = await hold(steady, `loc/verifier${offset}-${randomUUID()}`);
      expect((await verify(credential)).says).toBe('accepted');
      await own.set(offset);
      await expectClock(verify, offset);
      await watchOffline(verify, credential, endOf(lease), offset > 5);
      // Once more, with the clock set back to when it was good.
      await own.set(-8);
      expect((await verify(credential)).says).not.toBe('accepted');
    });
  });

  it.concurrent.each([-60, -1])(
    'a target whose clock is %i s off from the start believes its key server’s',
    async (offset) => {
      const own = await makeSteppedClock(join(steady.dataDir, `clock-from-start${offset}`), offset);
      const verify = await startVerifier(own, { keysUrl: `http://${steady.http}/.well-known/jwks.json` });
      const { lease, credential } = await hold(steady, `loc/slow${offset}-${randomUUID()}`);
      expect((await verify(credential)).says).toBe('accepted');
      await expectClock(verify, offset);
      await watchOffline(verify, credential, endOf(lease), false);
    },
  );

  it.concurrent('P3: what is released early is granted to nobody while a target with the worst allowed clock takes it', async () => {
    // WRIT_MAX_CLOCK_SKEW of these coordinators, and a key set that tells no time.
    const own = await makeSteppedClock(join(steady.dataDir, 'clock-worst'), -1);
    const verify = await startVerifier(own, { keys: await publishedKeys() });
    const resource = `loc/released-${randomUUID()}`;
    const { lease, credential } = await hold(steady, resource);
    expect((await verify(credential)).says).toBe('accepted');
    const runner = steady.client('runner');
    const { effectiveAt } = await runner.lease.releaseLease({
      runId: lease.runId,
      lease: { $case: 'leaseId', value: lease.leaseId },
    });
    const inForce = Number(effectiveAt?.seconds ?? 0n) * 1_000 + (effectiveAt?.nanos ?? 0) / 1e6;
    expect(inForce).toBeGreaterThan(Date.now());
    const next = later(hold(steady, resource, { wait: { seconds: 20n, nanos: 0 } }));
    await watchOffline(verify, credential, inForce, false);
    const { lease: taken } = await next;
    expect(Number(taken.grantedAt?.seconds ?? 0n) * 1_000 + (taken.grantedAt?.nanos ?? 0) / 1e6).toBeGreaterThanOrEqual(
      inForce,
    );
    expect((await verify(credential)).says).not.toBe('accepted');
  });
});

interface Held {
  readonly lease: Lease;
  readonly credential: string;
}

async function hold(on: CoordinatorProcess, resource: string, more: object = {}): Promise<Held> {
  const client = on.client('runner');
  const { outcome, credentials } = await client.lease.acquireWriteSet(
    {
      runId: await newRun(client),
      entries: [{ resource, access: Access.ACCESS_WRITE, actions: ['set'] }],
      ttl: { seconds: BigInt(TTL_SECONDS), nanos: 0 },
      idempotencyKey: randomUUID(),
      audiences: ['target'],
      ...more,
    },
    { timeoutMs: 30_000 },
  );
  if (outcome?.$case !== 'lease') throw new Error(`not granted: ${outcome?.$case}`);
  const [issued] = credentials;
  if (issued?.outcome?.$case !== 'credential') throw new Error(`no credential: ${JSON.stringify(issued?.outcome)}`);
  return { lease: outcome.value, credential: issued.outcome.value.token };
}

/** Milliseconds since 1970. */
function endOf({ expiresAt }: Lease): number {
  return Number(expiresAt?.seconds ?? 0n) * 1_000 + (expiresAt?.nanos ?? 0) / 1e6;
}

async function check(
  on: CoordinatorProcess,
  by: { readonly credential: string } | { readonly leaseId: string },
  { entries }: Lease,
): Promise<FenceReason | undefined> {
  const [entry] = entries;
  const fencingToken = 'leaseId' in by ? (entry?.fencingToken ?? 0n) : 0n;
  const { results } = await on.client('target').fence.checkFence({
    ...by,
    writes: [{ resource: entry?.resource ?? '', action: 'set', fencingToken }],
  });
  return results[0]?.reason;
}

/** Asks until it is refused: nothing sent at or after `end` was accepted, and nothing refused that was answered before. */
async function watch<T>(ask: () => Promise<T>, isAccepted: (answer: T) => boolean, end: number): Promise<void> {
  for (;;) {
    const sent = Date.now();
    const answer = await ask();
    // Both are cut to the millisecond.
    const answered = Date.now() + 1;
    if (isAccepted(answer)) expect(sent, 'accepted after its end').toBeLessThan(end);
    else {
      expect(answered, `refused before its end: ${String(answer)}`).toBeGreaterThan(end);
      return;
    }
  }
}

/** So many seconds off, as read between the question and its answer. */
async function expectClock(verify: Verify, offset: number): Promise<void> {
  const sent = Date.now();
  const { clock } = await verify('x');
  const read = clock - offset * 1_000;
  expect(read).toBeGreaterThan(sent - 100);
  expect(read).toBeLessThan(Date.now() + 100);
}

type Verify = (credential: string) => Promise<{ readonly says: string; readonly clock: number }>;

/** The same for who verifies by itself: good until the credential's own end at least, and never after the lease's. */
async function watchOffline(verify: Verify, credential: string, end: number, mayRefuse: boolean): Promise<void> {
  const { exp = 0 } = decodeJwt(credential);
  for (;;) {
    const sent = Date.now();
    const { says } = await verify(credential);
    const answered = Date.now() + 1;
    if (says === 'accepted') expect(sent, 'accepted after the end of its lease').toBeLessThan(end);
    else if (!mayRefuse) expect(answered, `refused before its end: ${says}`).toBeGreaterThan(exp * 1_000);
    if (sent > end) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function publishedKeys(): Promise<JSONWebKeySet> {
  const { jwks } = await steady.client('auditor').credential.getKeys({});
  return JSON.parse(jwks) as JSONWebKeySet;
}

async function startVerifier(
  { env }: SteppedClock,
  keys: { readonly keys: JSONWebKeySet } | { readonly keysUrl: string },
): Promise<Verify> {
  const options = { issuer: 'https://writ.test', audience: 'target', ...keys };
  const child = spawn(process.execPath, [VERIFIER, JSON.stringify(options)], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  verifiers.push(child);
  const lines = createInterface({ input: child.stdout });
  const verify: Verify = async (credential) => {
    const answered = once(lines, 'line') as Promise<[string]>;
    child.stdin.write(`${credential}\n`);
    return JSON.parse((await answered)[0]) as { says: string; clock: number };
  };
  // It runs when it answers.
  await eventually(
    () => verify('x'),
    ({ says }) => says === 'malformed',
  );
  return verify;
}
