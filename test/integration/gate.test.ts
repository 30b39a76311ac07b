import { type AddressInfo, createServer, type Socket } from 'node:net';
import { generateProof } from 'dpop';
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type AllowedWrites,
  type CredentialVerifier,
  conditionOf,
  connectWrit,
  createCredentialVerifier,
  createGate,
  type Gate,
  type GateDecision,
  type GateOptions,
  type GateRequest,
  type Refused,
  reportWrite,
  type VersionConflictError,
} from '../../src/clients/target/index.js';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { as, createRun, eventually, granted, ISSUER, putMap, write } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';
import { latch } from '../support/target-servers.js';

/** The gate, asked as a plain function, with a real coordinator behind it. */

const MAP = `
version: 1
kinds:
  - pattern: release/{env}
    owner_service: [target]
    actions:
      promote: { access: write, concurrency: lease, change_class: shared_pointer }
      annotate: { access: write, change_class: derived }
  - { pattern: "route/{env}", actions: { shift: { access: write, concurrency: lease } } }
  - { pattern: "flag/{name}", validation: local, actions: { set: { access: write, concurrency: lease } } }
  - { pattern: "pointer/{name}", actions: { set: { access: write, concurrency: lease, tracked: true } } }
  - { pattern: "site/{name}", actions: { publish: { access: write, concurrency: lease, change_class: derived } } }
  - { pattern: "page/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "note/{name}", validation: local, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "wiki/{page...}", mode: observe, actions: { edit: { access: write } } }
implies:
  - when: { pattern: "site/{name}", access: write }
    touches: [{ resource: "page/{name}", access: write, actions: [replace] }]
`;

const ROUTES = {
  version: 1,
  routes: [
    {
      method: 'POST',
      path: '/releases/{env}/promote',
      writes: [
        { resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer', resolver: 'release-owner' },
      ],
    },
    {
      method: 'POST',
      path: '/releases/{env}/annotate',
      writes: [{ resource: 'release/{env}', action: 'annotate', change_class: 'derived' }],
    },
    {
      method: 'POST',
      path: '/rollouts/{env}',
      writes: [
        { resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' },
        { resource: 'route/{env}', action: 'shift', change_class: 'shared_pointer' },
      ],
    },
    {
      method: 'PUT',
      path: '/flags/{name}',
      writes: [{ resource: 'flag/{name}', action: 'set', change_class: 'derived' }],
    },
    {
      method: 'PUT',
      path: '/pointers/{name}',
      writes: [{ resource: 'pointer/{name}', action: 'set', change_class: 'shared_pointer' }],
    },
    {
      method: 'PUT',
      path: '/wiki/{page...}',
      writes: [{ resource: 'wiki/{page...}', action: 'edit', change_class: 'derived' }],
    },
    {
      method: 'POST',
      path: '/routes/{env}/shift',
      writes: [{ resource: 'route/{env}', action: 'shift', change_class: 'shared_pointer' }],
      when_unreachable: 'allow_guarded',
    },
    ...['page', 'note'].map((kind) => ({
      method: 'PUT',
      path: `/${kind}s/{name}`,
      writes: [{ resource: `${kind}/{name}`, action: 'replace', change_class: 'shared_document', resolver: 'editor' }],
    })),
    { method: 'GET', path: '/releases/{env}', reads: true },
    { method: 'POST', path: '/webhooks/ci', unprotected: 'signed by the sender' },
  ],
};

let replica: ServedReplica;
let gate: Gate;
let runId: string;
let envs = 0;
const gates: Gate[] = [];
const problems: string[] = [];

function newGate(more: Partial<GateOptions> = {}): Gate {
  const { routes } = ROUTES;
  // The bold route needs a verifier and a guard; gates without them do without it.
  const tame = { ...ROUTES, routes: routes.map(({ when_unreachable: _, ...route }) => route) };
  const made = createGate({
    client: replica.client('target'),
    routes: tame,
    onProblem: (what) => problems.push(what),
    ...more,
  });
  gates.push(made);
  return made;
}

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  runId = await createRun(replica.api);
  gate = newGate();
});

afterAll(async () => {
  for (const made of gates) await made.close();
  await replica?.stop();
});

const freshEnv = (): string => `env-${++envs}`;

function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  more: Partial<GateRequest> = {},
  by = gate,
) {
  return by.decide({ method, path, headers, ...more });
}

const presenting = (lease: Lease, index = 0): Record<string, string> => ({
  'writ-lease': lease.leaseId,
  'writ-fencing-token': String(lease.entries[index]?.token),
});

function allowed(decision: GateDecision): AllowedWrites {
  if (!decision.allowed || decision.kind !== 'writes') throw new Error(`not let in: ${JSON.stringify(decision)}`);
  return decision;
}

function refused(decision: GateDecision): Refused {
  if (decision.allowed) throw new Error(`let in: ${decision.kind}`);
  const { problem } = decision;
  expect(problem).toMatchObject({
    type: `urn:writ:problem:${problem.code}`,
    title: expect.stringMatching(/./),
    detail: expect.stringMatching(/\.$/),
    next: expect.stringMatching(/\.$/),
  });
  return decision;
}

/** A lease on a release of its own. */
async function leaseOnRelease(action = 'promote', by = runId): Promise<{ env: string; lease: Lease }> {
  const env = freshEnv();
  return { env, lease: await granted(replica.api, by, [write(`release/${env}`, action)]) };
}

async function issue(lease: Lease, confirmation: Confirmation | null = null): Promise<string> {
  const { value } = await replica.api.issueCredential(as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: 'target',
    confirmation,
    requestId: '',
  });
  if (value.credential === null) throw new Error(`no credential: ${value.refusal?.message}`);
  return value.credential.token;
}

const release = (lease: Lease) =>
  replica
    .client('runner')
    .lease.releaseLease({ runId: lease.runId, lease: { $case: 'leaseId', value: lease.leaseId } });

async function eventsOf(requestId: string) {
  return (await replica.client('auditor').audit.listEvents({ requestId })).events;
}

async function verifier(more = {}) {
  return createCredentialVerifier({
    issuer: ISSUER,
    audience: 'target',
    keys: (await replica.keys()) as never,
    ...more,
  });
}

describe('a write under a lease', () => {
  it('is let in with all that the guard and the record need', async () => {
    const { env, lease } = await leaseOnRelease();
    const decision = allowed(
      await ask('POST', `/releases/${env}/promote?dry=no`, { ...presenting(lease), 'x-request-id': 'r-1' }),
    );
    const [entry] = lease.entries;
    expect(decision).toMatchObject({
      requestId: 'r-1',
      decidedBy: 'coordinator',
      runId,
      leaseId: lease.leaseId,
      expiresAt: new Date((lease.expiresAt ?? 0) / 1_000),
      observedVersion: undefined,
      writes: [
        {
          resource: `release/${env}`,
          action: 'promote',
          changeClass: 'shared_pointer',
          resolver: 'release-owner',
          token: BigInt(entry?.token ?? 0),
          exclusive: true,
          observedOnly: false,
          reason: 'ok',
        },
      ],
      toGuard: [
        { resource: `release/${env}`, action: 'promote', token: BigInt(entry?.token ?? 0), exclusive: true, runId },
      ],
    });
    expect(decision.validUntil).toBeGreaterThan(performance.now());
    expect(decision.logRevision).toBeGreaterThan(0n);
  });

  it('by an optimistic action needs the version that was read, or that there is none yet (C8)', async () => {
    const { env, lease } = await leaseOnRelease('annotate');
    const annotate = (headers: Record<string, string>) =>
      ask('POST', `/releases/${env}/annotate`, { ...presenting(lease), ...headers });
    expect(allowed(await annotate({ 'if-match': '"7"' }))).toMatchObject({
      observedVersion: '7',
      toGuard: [{ exclusive: false }],
    });
    expect(allowed(await annotate({ 'if-none-match': '*' })).observedVersion).toBe('');
    for (const headers of [
      {},
      { 'if-match': '*' },
      { 'if-match': 'W/"7"' },
      { 'if-match': '7' },
      { 'if-none-match': '"7"' },
    ] as Record<string, string>[])
      expect(refused(await annotate(headers)).problem).toMatchObject({
        status: 428,
        code: 'version_required',
        conflict_category: 'derived',
      });
  });

  it('of several resources brings a token for each, in the order of the route, or one for all', async () => {
    const env = freshEnv();
    const one = await granted(replica.api, runId, [write(`release/${env}`, 'promote'), write(`route/${env}`, 'shift')]);
    const [release, route] = one.entries;
    const roll = (tokens: string) =>
      ask('POST', `/rollouts/${env}`, { 'writ-lease': one.leaseId, 'writ-fencing-token': tokens });
    expect(allowed(await roll(`${release?.token}, ${route?.token}`)).toGuard).toHaveLength(2);
    expect(allowed(await roll(String(release?.token))).toGuard).toHaveLength(2);
    expect(refused(await roll(`${release?.token},${Number(route?.token) - 1}`)).problem).toMatchObject({
      status: 409,
      code: 'stale_token',
      resource: `route/${env}`,
    });
    expect(refused(await roll(`1,${Number(route?.token) - 1}`)).problem.refused).toEqual([
      { resource: `release/${env}`, action: 'promote', code: 'stale_token' },
      { resource: `route/${env}`, action: 'shift', code: 'stale_token' },
    ]);
    expect(refused(await roll('1,2,3')).problem).toMatchObject({ status: 400, code: 'malformed_request' });
  });

  it('R4: of a tracked action, sent again while it runs, is another write in flight, under the same request id', async () => {
    const by = await createRun(replica.api);
    const name = freshEnv();
    const requestId = `slow-${name}`;
    const lease = await granted(replica.api, by, [write(`pointer/${name}`, 'set')]);
    const set = async () =>
      allowed(await ask('PUT', `/pointers/${name}`, { ...presenting(lease), 'x-request-id': requestId })).writes[0]
        ?.admissionId ?? '';
    const slow = await set();
    const resent = await set();
    expect(slow).not.toBe('');
    expect(resent).not.toBe(slow);
    // The second is told that the first is in flight, and has changed nothing.
    const target = replica.client('target');
    expect(await reportWrite(target, { writes: [{ admissionId: resent, result: 'failed' }] })).toEqual(['closed']);
    const stop = async () =>
      (await replica.api.stopRun(as('operator'), { runId: by, reason: 'enough' })).value.run.run.state;
    expect(await stop()).toBe('stopping');
    expect(await reportWrite(target, { writes: [{ admissionId: slow, result: 'succeeded' }] })).toEqual(['closed']);
    expect(await stop()).toBe('stopped');
    // Found by the id that the caller sent, and by that of each attempt, which says whose it is.
    const admitted = (await eventsOf(requestId)).filter(({ kind }) => kind === 'writes_admitted');
    expect(admitted).toHaveLength(2);
    const [attempt = ''] = admitted[0]?.requestIds.filter((id) => id !== requestId) ?? [];
    expect((await eventsOf(attempt)).map(({ revision }) => revision)).toContain(admitted[0]?.revision);
  });
});

describe('a conflict on a shared document (W4)', () => {
  /** What the target answers to a write from version 41 of a document that is at 42. */
  async function conflict(path: string, headers: Record<string, string>, by = gate) {
    const decision = allowed(await ask('PUT', path, { ...headers, 'if-match': '"41"' }, {}, by));
    const [target] = decision.writes;
    if (target === undefined) throw new Error('no write was let in');
    const { status, resolver, retryable, next } = await conditionOf({ 'if-match': '"41"' }, target)
      .change(
        { query: async (text: string) => ({ rows: text.startsWith('SELECT') ? [{ version: 42 }] : [] }) } as never,
        {
          update: { text: 'UPDATE page SET version = 43 WHERE version = :observed RETURNING version', values: [] },
          current: { text: 'SELECT version FROM page', values: [] },
        },
      )
      .then(
        () => Promise.reject(new Error('no conflict')),
        (error: VersionConflictError) => error.problem,
      );
    return { status, resolver, retryable, stops: next?.startsWith('Stop.'), decidedBy: decision.decidedBy };
  }
  const goesOn = { status: 412, resolver: 'editor', retryable: true, stops: false, decidedBy: 'coordinator' };
  const stops = { ...goesOn, retryable: false, stops: true };

  it('lets the run that asked for it by name read again and decide anew, and stops one to which a rule gave it', async () => {
    const [page, home] = [freshEnv(), freshEnv()];
    const named = await granted(replica.api, runId, [write(`page/${page}`, 'replace')]);
    expect(await conflict(`/pages/${page}`, presenting(named))).toEqual(goesOn);
    const implied = await granted(replica.api, runId, [write(`site/${home}`, 'publish')]);
    const index = implied.entries.findIndex(({ resource }) => resource === `page/${home}`);
    expect(implied.entries[index]?.impliedBy).toBe('implies[0]');
    expect(await conflict(`/pages/${home}`, presenting(implied, index))).toEqual(stops);
  });

  it('counts by a credential what its lease was asked for, and stops where nobody was asked', async () => {
    const [mine, ours] = [freshEnv(), freshEnv()];
    const named = await granted(replica.api, runId, [write(`page/${mine}`, 'replace')]);
    expect(await conflict(`/pages/${mine}`, { authorization: `Bearer ${await issue(named)}` })).toEqual(goesOn);
    const implied = await granted(replica.api, runId, [write(`site/${ours}`, 'publish')]);
    expect(await conflict(`/pages/${ours}`, { authorization: `Bearer ${await issue(implied)}` })).toEqual(stops);
    const note = await granted(replica.api, runId, [write(`note/${mine}`, 'replace')]);
    const local = newGate({ verifier: await verifier(), local: ['note/{name}'] });
    const authorization = `Bearer ${await issue(note)}`;
    expect(await conflict(`/notes/${mine}`, { authorization }, local)).toEqual({ ...stops, decidedBy: 'credential' });
  });
});

describe('a write by a credential', () => {
  it('needs no token: what the guard compares comes from the coordinator', async () => {
    const { env, lease } = await leaseOnRelease();
    const authorization = `Bearer ${await issue(lease)}`;
    const decision = allowed(await ask('POST', `/releases/${env}/promote`, { authorization }));
    expect(decision).toMatchObject({
      runId,
      leaseId: lease.leaseId,
      decidedBy: 'coordinator',
      toGuard: [{ token: BigInt(lease.entries[0]?.token ?? 0), exclusive: true }],
    });
    // It counts before a lease that comes with it; a bearer that is no credential of Writ is the service's own affair.
    expect(
      (await ask('POST', `/releases/${env}/promote`, { authorization, 'writ-lease': 'x', 'writ-fencing-token': '1' }))
        .allowed,
    ).toBe(true);
    const own = { authorization: 'Bearer a.session.token', ...presenting(lease) };
    expect((await ask('POST', `/releases/${env}/promote`, own)).allowed).toBe(true);
    await release(lease);
    expect(refused(await ask('POST', `/releases/${env}/promote`, { authorization })).problem).toMatchObject({
      status: 409,
      code: 'released',
    });
  });

  it('is refused with a challenge when it is none, by the coordinator as by a verifier', async () => {
    const { env, lease } = await leaseOnRelease();
    const [header, payload, signature = ''] = (await issue(lease)).split('.');
    const forged = `${header}.${payload}.${signature.slice(0, -6)}AAAAAA`;
    for (const by of [gate, newGate({ verifier: await verifier() })]) {
      for (const [token, code] of [
        [forged, 'bad_signature'],
        ['rubbish', 'malformed'],
      ] as const) {
        const { problem, headers } = refused(
          await ask('POST', `/releases/${env}/promote`, { authorization: `Bearer ${token}` }, {}, by),
        );
        expect(problem).toMatchObject({ status: 401, code });
        expect(headers['www-authenticate']).toBe('Bearer error="invalid_token"');
      }
    }
  });

  it('that is bound to a key needs the proof, which only a verifier can check', async () => {
    const { env, lease } = await leaseOnRelease();
    const pair = await generateKeyPair('ES256', { extractable: true });
    const jkt = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
    const token = await issue(lease, { kind: 'jkt', thumbprint: jkt });
    const path = `/releases/${env}/promote`;
    const url = `https://releases.example${path}`;
    const proof = () => generateProof(pair, url, 'POST', undefined, token);
    const verifying = newGate({ verifier: await verifier({ dpop: {} }) });
    const bound = { authorization: `DPoP ${token}`, dpop: await proof() };
    expect(allowed(await ask('POST', path, bound, { url }, verifying)).runId).toBe(runId);
    expect(refused(await ask('POST', path, bound, { url }, verifying)).problem.code).toBe('proof_replayed');
    const { headers } = refused(await ask('POST', path, { authorization: `DPoP ${token}` }, { url }, verifying));
    expect(headers['www-authenticate']).toBe('DPoP error="invalid_dpop_proof"');
    expect(refused(await ask('POST', path, { ...bound, dpop: await proof() }, {}, verifying)).problem.code).toBe(
      'proof_invalid',
    );
    // Nobody has checked the proof here, and so nobody has proved anything.
    expect(refused(await ask('POST', path, { ...bound, dpop: await proof() }, { url })).problem).toMatchObject({
      status: 401,
      code: 'not_bound',
    });
  });

  it('can be all that a service takes', async () => {
    const { env, lease } = await leaseOnRelease();
    const strict = newGate({ accept: ['credential'] });
    expect(refused(await ask('POST', `/releases/${env}/promote`, presenting(lease), {}, strict)).problem).toMatchObject(
      {
        status: 401,
        code: 'credential_required',
      },
    );
    const authorization = `Bearer ${await issue(lease)}`;
    expect((await ask('POST', `/releases/${env}/promote`, { authorization }, {}, strict)).allowed).toBe(true);
  });
});

describe('a refusal', () => {
  it('says what is wrong, what to do, and by which request the log tells of it', async () => {
    const { env, lease } = await leaseOnRelease();
    const { problem } = refused(
      await ask('POST', '/releases/prod/promote', { ...presenting(lease), 'x-request-id': 'undeclared-1' }),
    );
    expect(problem).toMatchObject({
      status: 403,
      code: 'not_covered',
      resource: 'release/prod',
      action: 'promote',
      conflict_category: 'shared_pointer',
      retryable: false,
      request_id: 'undeclared-1',
    });
    const recorded = await eventually(
      () => eventsOf('undeclared-1'),
      (items) => items.length > 0,
    );
    expect(recorded[0]).toMatchObject({ kind: 'checks_denied', runId });
    expect(
      refused(await ask('POST', `/releases/${env}/annotate`, { ...presenting(lease), 'if-match': '"1"' })).problem,
    ).toMatchObject({
      status: 403,
      code: 'action_not_allowed',
    });
  });

  it('of an old holder says so, and nothing of the new one (T4)', async () => {
    const { env, lease } = await leaseOnRelease();
    await release(lease);
    const newer = await granted(replica.api, await createRun(replica.api), [write(`release/${env}`, 'promote')]);
    const { problem } = refused(await ask('POST', `/releases/${env}/promote`, presenting(lease)));
    expect(problem).toMatchObject({ status: 409, code: 'released', resolver: 'release-owner', retryable: false });
    // The old lease with the new token: somebody guesses.
    const guessing = { 'writ-lease': newer.leaseId, 'writ-fencing-token': String(lease.entries[0]?.token) };
    const guessed = refused(await ask('POST', `/releases/${env}/promote`, guessing));
    expect(guessed.problem).toMatchObject({ status: 409, code: 'stale_token' });
    for (const one of [problem, guessed.problem]) {
      expect(JSON.stringify(one)).not.toContain(String(newer.entries[0]?.token));
      expect(JSON.stringify(one)).not.toContain(newer.runId);
    }
  });

  it('of a stopped run sends it home', async () => {
    const stopped = await createRun(replica.api);
    const { env, lease } = await leaseOnRelease('promote', stopped);
    await replica.api.stopRun(as('operator'), { runId: stopped, reason: 'it went astray' });
    const { problem } = refused(await ask('POST', `/releases/${env}/promote`, presenting(lease)));
    expect(problem).toMatchObject({ status: 409, code: 'run_stopped', next: expect.stringContaining('Stop working') });
  });

  it('of another run than the service knows the caller as', async () => {
    const { env, lease } = await leaseOnRelease();
    const path = `/releases/${env}/promote`;
    expect((await ask('POST', path, presenting(lease), { caller: { runId } })).allowed).toBe(true);
    const other = { caller: { runId: await createRun(replica.api) } };
    for (const headers of [presenting(lease), { authorization: `Bearer ${await issue(lease)}` }] as Record<
      string,
      string
    >[])
      expect(refused(await ask('POST', path, headers, other)).problem).toMatchObject({
        status: 403,
        code: 'wrong_holder',
      });
  });

  it('of a request that presents nothing asks for a credential', async () => {
    const { problem, headers } = refused(await ask('POST', '/releases/prod/promote'));
    expect(problem).toMatchObject({ status: 401, code: 'credential_required', resource: 'release/prod' });
    expect(headers['www-authenticate']).toBe('Bearer');
  });

  it.each<[string, Record<string, string>]>([
    ['a lease with spaces around', { 'writ-lease': ' x ', 'writ-fencing-token': '1' }],
    ['a lease that is empty', { 'writ-lease': '', 'writ-fencing-token': '1' }],
    ['a lease and no token', { 'writ-lease': 'x' }],
    ['a token that is no number', { 'writ-lease': 'x', 'writ-fencing-token': '0x10' }],
    ['a token of zero', { 'writ-lease': 'x', 'writ-fencing-token': '0' }],
    ['a negative token', { 'writ-lease': 'x', 'writ-fencing-token': '-1' }],
    ['a token beyond 64 bits', { 'writ-lease': 'x', 'writ-fencing-token': '18446744073709551616' }],
    ['a token too many', { 'writ-lease': 'x', 'writ-fencing-token': '1,' }],
    ['a request id with a line break', { 'x-request-id': 'a\nb' }],
    ['a request id of 129 characters', { 'x-request-id': 'a'.repeat(129) }],
  ])('of %s is told as malformed', async (_name, headers) => {
    expect(refused(await ask('POST', '/releases/prod/promote', headers)).problem).toMatchObject({
      status: 400,
      code: 'malformed_request',
    });
  });

  it('of what the route table does not know names no route', async () => {
    expect(refused(await ask('DELETE', '/releases/prod')).problem).toMatchObject({ status: 403, code: 'unrouted' });
    expect(refused(await ask('POST', '/releases/../webhooks/ci')).problem).toMatchObject({
      status: 400,
      code: 'malformed_request',
    });
  });
});

describe('a request that writes nothing under Writ', () => {
  it('is let in without a check', async () => {
    expect(await ask('GET', '/releases/prod')).toMatchObject({ allowed: true, kind: 'reads' });
    expect(await ask('POST', '/webhooks/ci')).toMatchObject({
      allowed: true,
      kind: 'unprotected',
      route: { reason: 'signed by the sender' },
    });
  });
});

describe('a kind that is only observed', () => {
  it('lets in who presents nothing at all, and records it (C14)', async () => {
    const decision = allowed(await ask('PUT', '/wiki/ops/runbook', { 'x-request-id': 'observed-1' }));
    expect(decision).toMatchObject({
      writes: [{ observedOnly: true, reason: 'unknown_lease', token: undefined }],
      toGuard: [],
      runId: '',
    });
    await eventually(
      () => eventsOf('observed-1'),
      (items) => items.some(({ kind, body }) => kind === 'checks_denied' && body.includes('"observedOnly":true')),
    );
  });
});

/** A lease on what a route writes that says `allow_guarded`, its credential, and a gate that takes that. */
async function boldly(more: Partial<GateOptions> = {}) {
  const env = freshEnv();
  const lease = await granted(replica.api, runId, [write(`route/${env}`, 'shift')]);
  const bold = newGate({ routes: ROUTES, verifier: await verifier(), guard: {}, ...more });
  return { path: `/routes/${env}/shift`, headers: { authorization: `Bearer ${await issue(lease)}` }, bold };
}

/** Who let it in, or by what code it was refused. */
function byWhom(decision: GateDecision): string {
  return decision.allowed ? allowed(decision).decidedBy : decision.problem.code;
}

describe('while the coordinator cannot be reached', () => {
  it('nothing is let in, and it says when to try again (P8, C12)', async () => {
    const { env, lease } = await leaseOnRelease();
    const path = `/releases/${env}/promote`;
    const impatient = newGate({ checks: { timeoutMs: 500 } });
    await replica.down();
    try {
      const { problem, headers } = refused(await ask('POST', path, presenting(lease), {}, impatient));
      expect(problem).toMatchObject({ status: 503, code: 'coordinator_unreachable', retryable: true, retry_after: 2 });
      expect(headers['retry-after']).toBe('2');
      // Where the coordinator is, and what is wrong with it, is nothing for callers.
      expect(JSON.stringify(problem)).not.toContain(replica.endpoint);
      expect(problems).toContain('a fence check could not be made');
      expect((await ask('GET', '/releases/prod', {}, {}, impatient)).allowed).toBe(true);
    } finally {
      await replica.up();
    }
    await eventually(
      () => ask('POST', path, presenting(lease)),
      (decision) => decision.allowed,
    );
  });

  it('a route that says so lets in what a verified credential covers, for the guard to compare; nothing else (C7)', async () => {
    const env = freshEnv();
    const lease = await granted(replica.api, runId, [write(`route/${env}`, 'shift')]);
    const { env: releaseEnv, lease: onRelease } = await leaseOnRelease();
    const bold = newGate({ routes: ROUTES, verifier: await verifier(), guard: {}, checks: { timeoutMs: 500 } });
    const path = `/routes/${env}/shift`;
    const authorization = `Bearer ${await issue(lease)}`;
    const other = `Bearer ${await issue(onRelease)}`;
    // Asked by one with more patience: a slow moment of a coordinator that is there is no outage.
    const patient = newGate({ routes: ROUTES, verifier: await verifier(), guard: {} });
    expect(allowed(await ask('POST', path, { authorization }, {}, patient)).decidedBy).toBe('coordinator');
    await replica.down();
    try {
      const decision = allowed(await ask('POST', path, { authorization }, {}, bold));
      expect(decision).toMatchObject({
        decidedBy: 'credential',
        runId,
        leaseId: lease.leaseId,
        logRevision: undefined,
        toGuard: [{ resource: `route/${env}`, token: BigInt(lease.entries[0]?.token ?? 0), exclusive: true }],
      });
      // A token that nobody vouches for could be made up, and would shut others out at the guard.
      expect(refused(await ask('POST', path, presenting(lease), {}, bold)).problem.status).toBe(503);
      expect(refused(await ask('POST', path, { authorization: other }, {}, bold)).problem).toMatchObject({
        status: 403,
        code: 'not_covered',
      });
      expect(
        refused(await ask('POST', path, { authorization }, { caller: { runId: 'f'.repeat(32) } }, bold)).problem.code,
      ).toBe('wrong_holder');
      // Other routes do not say so.
      expect(
        refused(await ask('POST', `/releases/${releaseEnv}/promote`, { authorization: other }, {}, bold)).problem
          .status,
      ).toBe(503);
    } finally {
      await replica.up();
    }
  });

  it('a coordinator that limits the calls of the service is reached: such a route lets nothing in by that (P3)', async () => {
    const { path, headers, bold } = await boldly();
    await replica.down();
    await replica.up(1);
    try {
      const decisions = await Promise.all(Array.from({ length: 20 }, () => ask('POST', path, headers, {}, bold)));
      expect(decisions.map(byWhom)).not.toContain('credential');
      expect(decisions.map(byWhom)).toContain('coordinator_unreachable');
    } finally {
      await replica.down();
      await replica.up();
    }
  });

  it('a gate that has too much to do is no outage: such a route lets nothing in by that (P3)', async () => {
    const made = await verifier();
    const all = latch();
    let verified = 0;
    // All of them come to the check at one moment, however long the verification of each takes.
    const verifying: CredentialVerifier = {
      nonce: () => made.nonce(),
      verifyCredential: async (...args) => {
        const credential = await made.verifyCredential(...args);
        verified += 1;
        if (verified === 3) all.open();
        await all.promise;
        return credential;
      },
    };
    const { path, headers, bold } = await boldly({ checks: { maxInFlight: 1, maxWaiting: 0 }, verifier: verifying });
    const decisions = await Promise.all(Array.from({ length: 3 }, () => ask('POST', path, headers, {}, bold)));
    expect(decisions.map(byWhom).sort()).toEqual(['coordinator', 'gate_overloaded', 'gate_overloaded']);
  });

  it('nor is a check that came to its turn too late for an answer', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const client = connectWrit({ endpoint: `127.0.0.1:${(silent.address() as AddressInfo).port}`, token: 't' });
    try {
      const made = await verifier();
      const gone = new AbortController();
      // The caller before goes away when this one is in the queue: then its turn comes, and less than its whole time is left.
      const verifying: CredentialVerifier = {
        nonce: () => made.nonce(),
        verifyCredential: async (...args) => {
          const credential = await made.verifyCredential(...args);
          setImmediate(() => gone.abort());
          return credential;
        },
      };
      const checks = { timeoutMs: 1_500, maxInFlight: 1, maxWaiting: 1 };
      const { path, headers, bold } = await boldly({ client, checks, verifier: verifying });
      const unproven = { 'writ-lease': 'x', 'writ-fencing-token': '1' };
      const first = ask('POST', path, unproven, { signal: gone.signal }, bold);
      const second = ask('POST', path, headers, {}, bold);
      expect(byWhom(await first)).toBe('check_failed');
      expect(byWhom(await second)).toBe('coordinator_unreachable');
      // With all its time, silence does count as an outage.
      expect(byWhom(await ask('POST', path, headers, {}, bold))).toBe('credential');
    } finally {
      client.close();
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  it('such a route needs a guard and a verifier', async () => {
    expect(() => newGate({ routes: ROUTES, guard: {} })).toThrow(
      'routes[6] says when_unreachable: allow_guarded: give the gate its verifier too',
    );
    const made = await verifier();
    expect(() => newGate({ routes: ROUTES, verifier: made })).toThrow('give the gate its guard too');
  });

  it('kinds of local validation go on by the credential alone, of this namespace only', async () => {
    const name = freshEnv();
    const lease = await granted(replica.api, runId, [write(`flag/${name}`, 'set')]);
    const authorization = `Bearer ${await issue(lease)}`;
    const made = await verifier();
    const local = newGate({ verifier: made, local: ['flag/{name}'] });
    const elsewhere = newGate({ verifier: made, local: ['flag/{name}'], namespace: 'elsewhere' });
    await replica.down();
    try {
      expect(allowed(await ask('PUT', `/flags/${name}`, { authorization }, {}, local)).decidedBy).toBe('credential');
      expect(refused(await ask('PUT', '/flags/other', { authorization }, {}, local)).problem.code).toBe('not_covered');
      expect(refused(await ask('PUT', `/flags/${name}`, { authorization }, {}, elsewhere)).problem.code).toBe(
        'unknown_lease',
      );
    } finally {
      await replica.up();
    }
    expect(() => newGate({ local: ['flag/{name}'] })).toThrow('give the gate its verifier too');
  });
});

describe('checks under way', () => {
  it('are bounded: what does not fit is refused at once, and what waits is refused in time', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const client = connectWrit({ endpoint: `127.0.0.1:${(silent.address() as AddressInfo).port}`, token: 't' });
    try {
      const slow = newGate({ client, checks: { timeoutMs: 700, maxInFlight: 1, maxWaiting: 1 } });
      const headers = { 'writ-lease': 'x', 'writ-fencing-token': '1' };
      const answered: string[] = [];
      const asked = ['first', 'second', 'third'].map(async (name) => {
        const { problem } = refused(await ask('POST', '/releases/prod/promote', headers, {}, slow));
        answered.push(`${name}: ${problem.status} ${problem.code}`);
      });
      await Promise.all(asked);
      expect(answered[0]).toBe('third: 503 gate_overloaded');
      expect(answered).toContain('first: 503 coordinator_unreachable');
      // Its time is up with the first one's: whether its turn still came in the last moment is chance.
      expect(answered).toContainEqual(expect.stringMatching(/^second: 503 (gate_overloaded|coordinator_unreachable)$/));
      // All that was taken is given back.
      expect(refused(await ask('POST', '/releases/prod/promote', headers, {}, slow)).problem.code).toBe(
        'coordinator_unreachable',
      );
    } finally {
      client.close();
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  it('that the coordinator will not answer are no outage', async () => {
    const stranger = newGate({ client: replica.client('runner') });
    const { problem } = refused(
      await ask('POST', '/releases/prod/promote', { 'writ-lease': 'x', 'writ-fencing-token': '1' }, {}, stranger),
    );
    expect(problem).toMatchObject({ status: 503, code: 'check_failed', retryable: false });
    expect(problem.retry_after).toBeUndefined();
  });
});
