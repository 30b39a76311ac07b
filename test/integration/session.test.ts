import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Authenticator } from '../../src/auth/authenticator.js';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES } from '../../src/auth/principal.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { hashToken } from '../../src/auth/tokens.js';
import { WritError } from '../../src/clients/common/errors.js';
import { Fault } from '../../src/domain/fault.js';
import {
  LeaseServiceService,
  type SessionAnswer,
  type SessionCall,
  type SessionEvent,
  type SessionRequest,
  type SessionResponse,
} from '../../src/gen/writ/v1/lease_service.js';
import { EndReason, RefusalKind } from '../../src/gen/writ/v1/types.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { WritApi } from '../../src/services/api.js';
import { SessionLeases } from '../../src/services/session-leases.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { as, createRun, eventually, freshKey, granted, type TestReplica, write } from '../support/coordinator.js';
import { later } from '../support/later.js';
import { type Talking, talk } from '../support/talk.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

/** LeaseService.Session over a socket. */

const MAP = `
version: 1
kinds:
  - { pattern: "doc/{name}", ttl: 60s, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;

const PRINCIPALS: PrincipalEntry[] = [
  ...ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(`token-${role}`) })),
  { name: 'team', roles: [], namespaceRoles: { 'team-a': ['runner'] as const }, tokenSha256: hashToken('token-team') },
];

let pair: TwoReplicas;
let replica: TestReplica;
let other: TestReplica;
let server: GrpcServer;
let client: Client;
let elsewhere: { server: GrpcServer; client: Client };
let runs: string[];

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a: replica, b: other } = pair);
  runs = [await createRun(replica.api), await createRun(replica.api)];
  ({ server, client } = await listen(replica.api));
  elsewhere = await listen(other.api);
});

afterAll(async () => {
  for (const one of [client, elsewhere?.client]) one?.close();
  for (const one of [server, elsewhere?.server]) await one?.drain(0);
  await pair?.stop();
});

async function listen(
  api: WritApi,
  env: Record<string, string> = {},
  authenticator: Authenticator = createCallerAuthenticator({ principals: PRINCIPALS }),
) {
  const made = new GrpcServer({
    limits: readConfig(env).limits,
    metrics: createMetrics(),
    log: createLogger('silent'),
  });
  const address = await made.listen('127.0.0.1', 0);
  made.serve({ api, authenticator, blockerKey: Buffer.from('key') });
  return { server: made, client: new Client(address, credentials.createInsecure()) };
}

function serve(on: GrpcServer, api: WritApi, principals: readonly PrincipalEntry[]): void {
  on.serve({
    api,
    authenticator: createCallerAuthenticator({ principals: principals }),
    blockerKey: Buffer.from('key'),
  });
}

type Call = NonNullable<SessionCall['call']>;

const opened: Session[] = [];

/** A session as a test talks on it: numbers are counted, answers awaited by theirs. */
class Session {
  readonly talking: Talking<SessionRequest, SessionResponse>;
  #number = 0;

  constructor(on = client, token = 'token-runner') {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    this.talking = talk(on, LeaseServiceService.session, metadata);
    opened.push(this);
  }

  async call(call: Call | undefined, requestId = ''): Promise<string> {
    return told(await this.ask(call, requestId));
  }

  async ask(call: Call | undefined, requestId = ''): Promise<SessionAnswer['outcome']> {
    this.#number += 1;
    const number = this.#number;
    this.talking.send({ calls: [{ number, requestId, call }] });
    const find = (heard: readonly SessionResponse[]) =>
      heard.flatMap(({ answers }) => answers).find((answer) => answer.number === number);
    return find(await this.talking.until((heard) => find(heard) !== undefined))?.outcome;
  }

  /** The first event of this kind about this lease. */
  async event<K extends NonNullable<SessionEvent['event']>['$case']>(leaseId: string, kind: K) {
    const find = (heard: readonly SessionResponse[]) =>
      heard.flatMap(({ events }) => events).find(({ leaseId: id, event }) => id === leaseId && event?.$case === kind)
        ?.event;
    const found = find(await this.talking.until((heard) => find(heard) !== undefined));
    return found as Extract<NonNullable<SessionEvent['event']>, { $case: K }>;
  }

  async acquire(runId: string, resource: string, more: { wait?: number; ttl?: number; key?: string } = {}) {
    const outcome = await this.ask(acquire(runId, resource, more));
    if (outcome?.$case !== 'acquireWriteSet') throw new Error(`expected an answer to acquire, got ${told(outcome)}`);
    return outcome.value.outcome;
  }

  async hold(runId: string, resource: string, more: { wait?: number; ttl?: number; key?: string } = {}) {
    const outcome = await this.acquire(runId, resource, more);
    if (outcome?.$case !== 'lease') throw new Error(`expected a lease, got ${outcome?.$case}`);
    return outcome.value;
  }

  async wait(runId: string, resource: string, key = freshKey(), seconds = 60): Promise<string> {
    const outcome = await this.acquire(runId, resource, { wait: seconds, key });
    if (outcome?.$case !== 'waiting') throw new Error(`expected a place, got ${outcome?.$case}`);
    return outcome.value.requestId;
  }

  async end(): Promise<string> {
    this.talking.stream.end();
    return this.talking.ended;
  }
}

function acquire(runId: string, resource: string, more: { wait?: number; ttl?: number; key?: string } = {}): Call {
  const entry = { resource, access: 3, scope: 1, actions: ['replace'], observedVersion: undefined };
  const duration = (seconds: number | undefined) =>
    seconds === undefined ? undefined : { seconds: BigInt(seconds), nanos: 0 };
  const value = {
    ...{ namespace: '', runId, entries: [entry], task: undefined, resourceSet: '', purpose: '', requestId: '' },
    delegatedFrom: '',
    ...{ ttl: duration(more.ttl), wait: duration(more.wait), audiences: [] },
    idempotencyKey: more.key ?? freshKey(),
  };
  return { $case: 'acquireWriteSet', value };
}

const release = (runId: string, lease: { leaseId: string } | { acquireKey: string }): Call => ({
  $case: 'releaseLease',
  value: {
    namespace: '',
    runId,
    lease:
      'leaseId' in lease
        ? { $case: 'leaseId', value: lease.leaseId }
        : { $case: 'acquireKey', value: lease.acquireKey },
  },
});

const renew = (runId: string, ...leaseIds: string[]): Call => ({
  $case: 'renewLeases',
  value: { namespace: '', runId, renewals: leaseIds.map((leaseId) => ({ leaseId, ttl: undefined })) },
});

function told(outcome: SessionAnswer['outcome']): string {
  if (outcome?.$case === 'fault') return `${status[outcome.value.code]} ${WritError.fromFault(outcome.value).reason}`;
  return outcome?.$case ?? '';
}

const releaseBy = (runId: string, leaseId: string) =>
  replica.api.releaseLease(as('runner'), { runId, leaseId, acquireKey: null });

const [A, B] = [0, 1];
const run = (which: number): string => runs[which] ?? '';

let attempts = 0;
beforeEach(() => {
  attempts += 1;
});
/** Of this attempt of a test: what an earlier one holds, it holds for a while. */
const doc = (name: string): string => `doc/${name}-${attempts}`;

/** Also those of a test that failed: others count them. */
afterEach(async () => {
  for (const { talking } of opened.splice(0)) {
    talking.stream.cancel();
    await talking.ended;
  }
});

describe('calls on a session', () => {
  it('are answered as by themselves, each by its number', async () => {
    const session = new Session();
    const lease = await session.hold(run(A), doc('calls'));
    expect(lease.entries[0]?.fencingToken).toBeGreaterThan(0n);
    expect(await session.call({ $case: 'getLease', value: { namespace: '', leaseId: lease.leaseId } })).toBe(
      'getLease',
    );
    const { value: request } = acquire(run(B), doc('calls')) as Extract<Call, { $case: 'acquireWriteSet' }>;
    const preview = { request, takeOver: false, acceptOverlap: false };
    const previewed = await session.ask({ $case: 'previewWriteSet', value: preview });
    expect(previewed?.$case === 'previewWriteSet' && previewed.value.outcome?.$case).toBe('refusal');
    const refused = await session.acquire(run(B), doc('calls'));
    expect(refused?.$case === 'refusal' && refused.value.kind).toBe(RefusalKind.REFUSAL_KIND_HELD);
    expect(await session.call(renew(run(A), lease.leaseId))).toBe('renewLeases');
    const amend = { namespace: '', runId: run(A), leaseId: lease.leaseId, add: [], remove: [], downgrade: [] };
    expect(
      await session.call({ $case: 'amendWriteSet', value: { ...amend, idempotencyKey: freshKey(), requestId: '' } }),
    ).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await session.call(release(run(A), lease))).toBe('releaseLease');
    expect(await session.end()).toBe('OK');
  });

  it('of every method there is, for the roles of each', async () => {
    const [runner, operator] = [new Session(), new Session(client, 'token-operator')];
    const own = { namespace: '', page: undefined };
    const lease = await runner.hold(run(A), doc('every'));
    const listed = await runner.ask({
      $case: 'listLeases',
      value: { ...own, runId: run(A), resource: doc('every'), states: [], lockDelayed: false },
    });
    expect(listed?.$case === 'listLeases' && listed.value.leases.map(({ leaseId }) => leaseId)).toEqual([
      lease.leaseId,
    ]);
    const found = await runner.ask({ $case: 'findBlockers', value: { namespace: '', resource: doc('every') } });
    expect(found?.$case === 'findBlockers' && found.value.blockers).toHaveLength(1);

    const freeze = {
      namespace: '',
      pattern: doc('frozen'),
      scope: 0,
      denyChecks: false,
      until: undefined,
      reason: 'why',
    };
    expect(await runner.call({ $case: 'freeze', value: freeze })).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    const frozen = await operator.ask({ $case: 'freeze', value: freeze });
    expect(frozen?.$case === 'freeze' && frozen.value.freeze?.pattern).toBe(doc('frozen'));
    const freezes = await operator.ask({ $case: 'listFreezes', value: { ...own, resource: doc('frozen') } });
    expect(freezes?.$case === 'listFreezes' && freezes.value.freezes).toHaveLength(1);
    const thaw = { namespace: '', pattern: doc('frozen'), reason: '' };
    const thawed = await operator.ask({ $case: 'thaw', value: thaw });
    expect(thawed?.$case === 'thaw' && thawed.value.freeze?.pattern).toBe(doc('frozen'));

    const { value: wanted } = acquire(run(B), doc('every')) as Extract<Call, { $case: 'acquireWriteSet' }>;
    const { audiences: _, delegatedFrom: __, ...request } = wanted;
    const taking: Call = { $case: 'takeOver', value: { ...request, reason: 'why', acceptOverlap: false } };
    expect(await runner.call(taking)).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    const taken = await operator.ask(taking);
    if (taken?.$case !== 'takeOver' || taken.value.outcome?.$case !== 'lease') throw new Error(told(taken));
    expect(taken.value.ended.map(({ leaseId }) => leaseId)).toEqual([lease.leaseId]);
    // Whose it was is told.
    expect((await runner.event(lease.leaseId, 'lost')).value.endReason).toBe(EndReason.END_REASON_TAKEN_OVER);
    const { leaseId } = taken.value.outcome.value;
    const revoked = await operator.ask({ $case: 'revokeLease', value: { namespace: '', leaseId, reason: 'why' } });
    expect(revoked?.$case === 'revokeLease' && revoked.value.endReason).toBe(EndReason.END_REASON_REVOKED);

    const doubts = await operator.ask({
      $case: 'listInDoubt',
      value: { ...own, runId: '', resource: '', includeOpen: true },
    });
    expect(doubts?.$case === 'listInDoubt' && doubts.value.writes).toEqual([]);
    const settle = { namespace: '', admissionId: 'f'.repeat(32), outcome: 1, reason: 'why' };
    expect(await operator.call({ $case: 'settleInDoubt', value: settle })).toBe('NOT_FOUND ADMISSION_NOT_FOUND');
    await Promise.all([runner.end(), operator.end()]);
  });

  it('delegate a part of a lease to a child run, and get it back with a new token', async () => {
    const session = new Session();
    const whole = await session.hold(run(A), doc('whole'));
    const child = await createRun(replica.api, { parentRunId: run(A), forSeconds: 1_800 });
    const { value } = acquire(child, doc('whole')) as Extract<Call, { $case: 'acquireWriteSet' }>;
    const part = await session.ask({ $case: 'acquireWriteSet', value: { ...value, delegatedFrom: whole.leaseId } });
    if (part?.$case !== 'acquireWriteSet' || part.value.outcome?.$case !== 'lease') throw new Error(told(part));
    const entryOf = async () => {
      const answer = await session.ask({ $case: 'getLease', value: { namespace: '', leaseId: whole.leaseId } });
      return answer?.$case === 'getLease' ? answer.value.lease?.entries[0] : undefined;
    };
    expect(await entryOf()).toMatchObject({ suspended: true });
    const { leaseId, entries } = part.value.outcome.value;
    expect(await session.call(release(child, { leaseId }))).toBe('releaseLease');
    const back = await entryOf();
    expect(back?.suspended).toBe(false);
    expect(back?.fencingToken).toBeGreaterThan(entries[0]?.fencingToken ?? 0n);
    // What is a part ends with the whole, and its session hears of it.
    const again = await session.ask({
      $case: 'acquireWriteSet',
      value: { ...value, delegatedFrom: whole.leaseId, idempotencyKey: freshKey() },
    });
    if (again?.$case !== 'acquireWriteSet' || again.value.outcome?.$case !== 'lease') throw new Error(told(again));
    expect(await session.call(release(run(A), whole))).toBe('releaseLease');
    const lost = await session.event(again.value.outcome.value.leaseId, 'lost');
    expect(lost.value.endReason).toBe(EndReason.END_REASON_PARENT_ENDED);
    await session.end();
  });

  it('that cannot be answered end nothing', async () => {
    const session = new Session();
    expect(await session.call(undefined)).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await session.call(renew(run(A)))).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await session.call(renew(run(A), 'f'.repeat(32)), 'ümlaut')).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await session.call(acquire('0'.repeat(32), doc('none')))).toBe('NOT_FOUND RUN_NOT_FOUND');
    await session.hold(run(A), doc('after-faults'));
    session.talking.send({ calls: [] });
    expect(await session.end()).toBe('OK');
  });

  it('are for the roles of each method, in its namespace', async () => {
    expect(await new Session(client, 'token-target').talking.ended).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    const auditor = new Session(client, 'token-auditor');
    expect(await auditor.call(acquire(run(A), doc('x')))).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    expect(await auditor.call({ $case: 'getLease', value: { namespace: '', leaseId: '0'.repeat(32) } })).toBe(
      'NOT_FOUND LEASE_NOT_FOUND',
    );
    const team = new Session(client, 'token-team');
    expect(await team.call(acquire(run(A), doc('x')))).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    await Promise.all([auditor.end(), team.end()]);
  });

  it('with a number that is in use end it, and what was granted lives on', async () => {
    const session = new Session();
    const key = freshKey();
    const call = acquire(run(A), doc('twice'), { key });
    session.talking.send({ calls: [{ number: 1, requestId: '', call }] });
    session.talking.send({ calls: [{ number: 1, requestId: '', call }] });
    expect(await session.talking.ended).toBe('INVALID_ARGUMENT NUMBER_IN_USE');
    const again = new Session();
    expect((await again.hold(run(A), doc('twice'), { key })).state).toBe(2);
    await again.end();
  });
});

describe('sessions', () => {
  it('are counted, and the leases that they are told of', async () => {
    const gauge = async (name: string): Promise<number> => {
      const { text } = await replica.metrics.render();
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    };
    const counts = async () => [await gauge('writ_sessions'), await gauge('writ_session_leases')];
    await expect.poll(counts).toEqual([0, 0]);
    const [one, other] = [new Session(), new Session()];
    await one.hold(run(A), doc('counted'));
    await other.call(undefined);
    expect(await counts()).toEqual([2, 1]);
    await one.end();
    await expect.poll(counts).toEqual([1, 0]);
    await other.end();
    await expect.poll(counts).toEqual([0, 0]);
  });
});

describe('what happens to leases', () => {
  it('is pushed by the events of the log, without a look at all of them', async () => {
    const looks = vi.spyOn(SessionLeases.prototype, 'look').mockImplementation(() => undefined);
    try {
      const session = new Session();
      const [here, there] = [await session.hold(run(A), doc('pushed')), await session.hold(run(A), doc('elsewhere'))];
      await new Session().wait(run(B), doc('pushed'));
      expect((await session.event(here.leaseId, 'askedToYield')).value.resource).toBe(doc('pushed'));
      await releaseBy(run(A), here.leaseId);
      expect((await session.event(here.leaseId, 'lost')).value.endReason).toBe(EndReason.END_REASON_RELEASED);
      await other.api.revokeLease(as('operator'), { leaseId: there.leaseId, reason: 'a test' });
      expect((await session.event(there.leaseId, 'lost')).value.endReason).toBe(EndReason.END_REASON_REVOKED);
      await session.end();
    } finally {
      looks.mockRestore();
    }
  });
});

describe('a place in the queue', () => {
  it('is answered at once, and its grant is pushed', async () => {
    const [holder, waiter] = [new Session(), new Session()];
    const held = await holder.hold(run(A), doc('queue'));
    const key = freshKey();
    const leaseId = await waiter.wait(run(B), doc('queue'), key);
    expect(await holder.call(release(run(A), held))).toBe('releaseLease');
    const { value } = await waiter.event(leaseId, 'granted');
    expect(value.lease?.leaseId).toBe(leaseId);
    expect(value.lease?.entries[0]?.fencingToken).toBeGreaterThan(held.entries[0]?.fencingToken ?? 0n);
    // By the same key the same lease, with what is left of it counted from now.
    expect((await waiter.hold(run(B), doc('queue'), { key, wait: 60 })).leaseId).toBe(leaseId);
    await releaseBy(run(B), leaseId);
    expect((await waiter.event(leaseId, 'lost')).value.endReason).toBe(EndReason.END_REASON_RELEASED);
    await Promise.all([holder.end(), waiter.end()]);
  });

  it('that comes to nothing is lost, with the refusal', async () => {
    const session = new Session();
    const held = await session.hold(run(A), doc('nothing'));
    const late = await session.wait(run(B), doc('nothing'), freshKey(), 1);
    expect((await session.event(late, 'lost')).value).toMatchObject({
      endReason: EndReason.END_REASON_TIMED_OUT,
      refusal: { kind: RefusalKind.REFUSAL_KIND_WAIT_TIMEOUT },
    });
    const key = freshKey();
    const given = await session.wait(run(B), doc('nothing'), key);
    expect(await session.call(release(run(B), { acquireKey: key }))).toBe('releaseLease');
    expect((await session.event(given, 'lost')).value.endReason).toBe(EndReason.END_REASON_WITHDRAWN);
    await session.call(release(run(A), held));
    await session.end();
  });

  it('is kept when the session is cut, and goes on elsewhere by its key', async () => {
    const session = new Session();
    const held = await session.hold(run(A), doc('cut'));
    const key = freshKey();
    const place = await session.wait(run(B), doc('cut'), key);
    session.talking.stream.cancel();
    await session.talking.ended;
    const next = new Session(elsewhere.client);
    expect(await next.wait(run(B), doc('cut'), key)).toBe(place);
    // The lease of the cut session lives: only its holder, or its ttl, ends it.
    await releaseBy(run(A), held.leaseId);
    expect((await next.event(place, 'granted')).value.lease?.leaseId).toBe(place);
    await next.end();
  });
});

describe('a place in the queue that another call takes over', () => {
  it('is asked for again by who had it, and is told so: the other may be gone, as one that was sent long ago', async () => {
    const session = new Session();
    const held = await session.hold(run(A), doc('moved'));
    const key = freshKey();
    const place = await session.wait(run(B), doc('moved'), key);
    const late = new Session(elsewhere.client);
    expect(await late.wait(run(B), doc('moved'), key)).toBe(place);
    late.talking.stream.cancel();
    await session.event(place, 'placeMoved');
    expect(await session.wait(run(B), doc('moved'), key)).toBe(place);
    await releaseBy(run(A), held.leaseId);
    expect((await session.event(place, 'granted')).value.lease?.leaseId).toBe(place);
    await session.end();
  });

  it('is not, where it is the session itself that asks again', async () => {
    const session = new Session();
    const held = await session.hold(run(A), doc('again'));
    const key = freshKey();
    const place = await session.wait(run(B), doc('again'), key);
    expect(await session.wait(run(B), doc('again'), key)).toBe(place);
    await releaseBy(run(A), held.leaseId);
    await session.event(place, 'granted');
    const about = session.talking.heard.flatMap(({ events }) => events).filter(({ leaseId }) => leaseId === place);
    expect(about.map(({ event }) => event?.$case)).toEqual(['granted']);
    await session.end();
  });
});

describe('a lease of a session', () => {
  it('is in jeopardy when its renewal is overdue, and safe after one', async () => {
    const session = new Session();
    let told: NonNullable<SessionEvent['event']>[];
    // A machine that stands still for half of the ttl can leave one out: then it is done again.
    do {
      const { leaseId } = await session.hold(run(A), doc('late'), { ttl: 2 });
      const about = (heard: readonly SessionResponse[]) =>
        heard
          .flatMap(({ events }) => events)
          .flatMap(({ leaseId: id, event }) => (id === leaseId && event ? event : []));
      await session.talking.until((heard) => about(heard).length > 0);
      await session.call(renew(run(A), leaseId));
      await session.event(leaseId, 'lost');
      told = about(session.talking.heard);
    } while (told.length < 4);
    expect(told.map(({ $case }) => $case)).toEqual(['jeopardy', 'safe', 'jeopardy', 'lost']);
    expect(told).toMatchObject([
      { value: { validFor: { seconds: 0n } } },
      {},
      {},
      { value: { endReason: EndReason.END_REASON_EXPIRED } },
    ]);
    await session.end();
  });

  it('that is revoked is lost, once, with the reason', async () => {
    const session = new Session();
    const { leaseId } = await session.hold(run(A), doc('revoked'));
    await replica.api.revokeLease(as('operator'), { leaseId, reason: 'enough' });
    const { value } = await session.event(leaseId, 'lost');
    expect(value.endReason).toBe(EndReason.END_REASON_REVOKED);
    await session.hold(run(A), doc('something-else'));
    await session.end();
    const lost = session.talking.heard.flatMap(({ events }) => events).filter((event) => event.leaseId === leaseId);
    expect(lost).toHaveLength(1);
  });

  it('that was acquired elsewhere belongs to the session that renews it', async () => {
    const session = new Session();
    const { leaseId } = await granted(replica.api, run(A), [write(doc('adopted'), 'replace')]);
    await session.call(renew(run(A), leaseId));
    await replica.api.revokeLease(as('operator'), { leaseId, reason: 'enough' });
    await session.event(leaseId, 'lost');
    await session.end();
  });

  it('is told who wants it and what changed beneath it', async () => {
    const session = new Session();
    const read = { ...write(doc('input')), access: 'read' as const };
    const { leaseId } = await granted(replica.api, run(A), [write(doc('wanted'), 'replace'), read]);
    await session.call(renew(run(A), leaseId));
    const waiting = later(session.wait(run(B), doc('wanted')));
    expect((await session.event(leaseId, 'askedToYield')).value.resource).toBe(doc('wanted'));
    await session.hold(run(B), doc('input'));
    expect((await session.event(leaseId, 'inputChanged')).value.resource).toBe(doc('input'));
    await releaseBy(run(A), leaseId);
    await session.event(await waiting, 'granted');
    await session.end();
  });
});

describe('events of a caller who takes a while to be found out', () => {
  it('are told in their order, whichever answer about the caller comes first', async () => {
    const known = createCallerAuthenticator({ principals: PRINCIPALS });
    const unanswered: (() => void)[] = [];
    let isSlow = false;
    const authenticator: Authenticator = {
      authenticate(authorization) {
        if (!isSlow) return known.authenticate(authorization);
        return new Promise((resolve) => unanswered.push(() => resolve(known.authenticate(authorization))));
      },
    };
    const slow = await listen(replica.api, {}, authenticator);
    const session = new Session(slow.client);
    const held = await granted(replica.api, run(A), [write(doc('order'), 'replace')]);
    const place = await session.wait(run(B), doc('order'));
    isSlow = true;
    // The caller is looked at once a second besides: by then what happened before has been asked about.
    const asked = (times: number) =>
      eventually(
        () => unanswered.length,
        (length) => length >= times,
      );
    await releaseBy(run(A), held.leaseId);
    await asked(3);
    await releaseBy(run(B), place);
    await asked(6);
    isSlow = false;
    for (const answer of unanswered.reverse()) answer();
    await session.event(place, 'lost');
    await session.event(place, 'granted');
    const about = session.talking.heard.flatMap(({ events }) => events).filter(({ leaseId }) => leaseId === place);
    expect(about.map(({ event }) => event?.$case)).toEqual(['granted', 'lost']);
    await session.end();
    slow.client.close();
    await slow.server.drain(0);
  });
});

describe('a session', () => {
  it('is cut when its principal is not known any more, and told nothing more', async () => {
    const session = new Session();
    const { leaseId } = await session.hold(run(A), doc('unknown'));
    serve(
      server,
      replica.api,
      PRINCIPALS.filter(({ name }) => name !== 'runner'),
    );
    try {
      await replica.api.revokeLease(as('operator'), { leaseId, reason: 'enough' });
      expect(await session.talking.ended).toBe('UNAUTHENTICATED UNAUTHENTICATED');
      expect(session.talking.heard.flatMap(({ events }) => events)).toEqual([]);
    } finally {
      serve(server, replica.api, PRINCIPALS);
    }
  });

  it('is one of a thousand', async () => {
    const sessions = Array.from({ length: 1_000 }, () => new Session());
    const leases = await Promise.all(sessions.map((session, at) => session.hold(run(at % 2), doc(`many-${at}`))));
    expect(new Set(leases.map(({ leaseId }) => leaseId)).size).toBe(1_000);
    const outcomes = sessions.map((session, at) =>
      session.call(release(run(at % 2), leases[at] as { leaseId: string })),
    );
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['releaseLease']));
    expect(new Set(await Promise.all(sessions.map((session) => session.end())))).toEqual(new Set(['OK']));
  });

  it('is cut when nothing can be told here, and its places go on by their keys', async () => {
    const failing: WritApi = new Proxy(replica.api, {
      get: (target, name) =>
        name !== 'openSession'
          ? Reflect.get(target, name)
          : (listener: Parameters<WritApi['openSession']>[0]) => {
              setImmediate(() => listener.failed(new Fault('unavailable', 'NOT_READY', 'not now')));
              return target.openSession(listener);
            },
    });
    const third = await listen(failing);
    expect(await new Session(third.client).talking.ended).toBe('UNAVAILABLE NOT_READY');
    third.client.close();
    await third.server.drain(0);
  });

  it('is told to move on before the replica ends, and its waiting requests go on elsewhere (F26)', async () => {
    const third = await listen(replica.api);
    const session = new Session(third.client);
    const held = await session.hold(run(A), doc('moving'));
    const key = freshKey();
    const place = await session.wait(run(B), doc('moving'), key);
    const drained = third.server.drain(10_000);
    await session.talking.until((heard) => heard.some(({ goingAway }) => goingAway));
    expect(await session.call(release(run(A), held))).toBe('UNAVAILABLE SHUTTING_DOWN');
    session.talking.stream.end();
    expect(await session.talking.ended).toBe('OK');
    await drained;
    third.client.close();
    const next = new Session(elsewhere.client);
    expect(await next.wait(run(B), doc('moving'), key)).toBe(place);
    await next.call(release(run(A), held));
    await next.event(place, 'granted');
    await next.end();
  });
});
