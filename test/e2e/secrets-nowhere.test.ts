import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Client, credentials as grpcCredentials, type ServiceError } from '@grpc/grpc-js';
import { generateProof } from 'dpop';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  compactDecrypt,
  decodeProtectedHeader,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  type JSONWebKeySet,
  SignJWT,
} from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../src/auth/roles.js';
import { hashToken, makeConsolePrincipal, makeToken } from '../../src/auth/tokens.js';
import { runCli } from '../../src/cli/program.js';
import { CredentialRefused, createCredentialVerifier } from '../../src/clients/target/index.js';
import { Access, type Lease } from '../../src/gen/writ/v1/types.js';
import { LOCAL_NAMES, testAuthority } from '../support/certificates.js';
import { eventually } from '../support/coordinator.js';
import { authorized, callRpc, everyRpc, type Outcome, type Rpc } from '../support/every-rpc.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { Secrets, textOf, Written } from '../support/secrets.js';
import { type WatchedProcess, watchCoordinator } from '../support/watched-coordinator.js';

/**
 * A3: secrets stand in no log, error, event or metric. Coordinators as users run them, at the most talkative level, with
 * every RPC and route, commands, refusals, forgeries, rotations, broken files and a database that dies; then all that
 * was written is searched for each secret that took part.
 *
 * Two kinds are told apart. Secrets proper: whoever has one can be somebody. They stand nowhere but in the answer that
 * hands them out. Handles: lease ids and fencing tokens, which mean something to who may present them; they stand in the
 * events and in answers to those who may see them, and not in logs, errors, metrics, spans, or answers to strangers.
 */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], ttl: 120s, max_ttl: 5m, actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;
const ROUTE_TABLE = `
version: 1
routes:
  - { method: PUT, path: "/releases/{env}", writes: [{ resource: "release/{env}", action: promote, change_class: shared_pointer, resolver: owner }] }
`;
const ROLES = ['admin', 'operator', 'auditor', 'approver', 'runner', 'target'] as const;
const ISSUER = 'https://issuer.test';
const WRIT_ISSUER = 'https://writ.test';

const secrets = new Secrets();
const handles = new Secrets();
const written = new Written();
/** By method: how its calls ended. */
const codes = new Map<string, Set<string>>();

let directory: string;
let database: PrivatePostgres;
let coordinator: WatchedProcess;
let env: Record<string, string>;
let rpcs: Rpc[];
let clients: Record<'plain' | 'certified', Client>;
let http: string;
let ca: Buffer;
let issuerKey: CryptoKey;
const tokens: Record<string, string> = {};
const processes: WatchedProcess[] = [];

const file = (name: string): string => join(directory, name);
const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });
const now = (): number => Math.floor(Date.now() / 1_000);

beforeAll(async () => {
  directory = await makeTestDirectory('secrets');
  database = await startPrivatePostgres();
  rpcs = await everyRpc();
  secrets.add('the password of the database', new URL(database.url).password);
  await makeFiles();
  await start();
}, 120_000);

afterAll(async () => {
  for (const client of Object.values(clients ?? {})) client.close();
  for (const one of processes) await one.stop();
  await database?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** Certificates, principals and an issuer, as an admin would lay them out. */
async function makeFiles(): Promise<void> {
  const authority = await testAuthority(directory);
  ca = readFileSync(authority.caFile);
  await authority.issue('server', { use: 'server', names: LOCAL_NAMES });
  await authority.issue('runner', { names: [{ type: 'url', value: 'spiffe://example.org/runner' }] });
  for (const name of ['server', 'runner'])
    secrets.addPrivateKey(`the key of ${name}`, readFileSync(file(`${name}-key.pem`), 'utf8'));
  secrets.addPrivateKey('the key of the authority', authority.pair.key);

  const pair = await generateKeyPair('ES256', { extractable: true });
  issuerKey = pair.privateKey;
  secrets.addPrivateKey('the key of the issuer', await exportPKCS8(issuerKey));
  writeFileSync(
    file('issuer.json'),
    JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'issuer-key', alg: 'ES256' }] }),
  );
  for (const name of [...ROLES, 'stranger']) {
    tokens[name] = makeToken().token;
    secrets.add(`the token of ${name}`, tokens[name]);
  }
  writePrincipals();
  writeFileSync(file('routes.yaml'), ROUTE_TABLE);
}

function principals(): object {
  return {
    principals: [...ROLES, 'stranger'].map((name) => ({
      name,
      roles: [name === 'stranger' ? 'runner' : name],
      token_sha256: hashToken(tokens[name] ?? ''),
      ...(name === 'runner' ? { certificates: [{ spiffe_id: 'spiffe://example.org/runner' }] } : {}),
    })),
    issuers: [
      {
        issuer: ISSUER,
        audience: 'writ',
        jwks_file: 'issuer.json',
        algorithms: ['ES256'],
        mappings: [{ claims: { sub: 'ci-*' }, principal: 'ci:{sub}', roles: ['runner'] }],
        initiator_claim: 'email',
      },
    ],
  };
}

const writePrincipals = (): void => writeFileSync(file('principals.json'), JSON.stringify(principals()));

async function start(): Promise<void> {
  const keyEncryptionKey = randomBytes(32);
  secrets.addBytes('the key-encryption key', keyEncryptionKey);
  env = {
    WRIT_DATABASE_URL: database.url,
    WRIT_DATA_DIR: file('data'),
    WRIT_TOKENS_FILE: file('principals.json'),
    WRIT_ROUTES_FILE: file('routes.yaml'),
    WRIT_TLS_CERT_FILE: file('server.pem'),
    WRIT_TLS_KEY_FILE: file('server-key.pem'),
    WRIT_TLS_CLIENT_CA_FILE: file('ca.pem'),
    WRIT_KEY_ENCRYPTION_KEY: keyEncryptionKey.toString('base64url'),
    WRIT_ISSUER,
    WRIT_MAX_CLOCK_SKEW: '1s',
    WRIT_MAX_CALLS_PER_SECOND: '300',
    WRIT_GRPC_PORT: '0',
    WRIT_HTTP_PORT: '0',
    WRIT_LOG_LEVEL: 'trace',
    WRIT_TEST_SPANS_FILE: file('spans.ndjson'),
  };
  await command('migrate');
  coordinator = watchCoordinator(env);
  processes.push(coordinator);
  const ready = await coordinator.ready;
  http = ready.http;
  const [key, cert] = [readFileSync(file('runner-key.pem')), readFileSync(file('runner.pem'))];
  clients = {
    plain: new Client(ready.grpc, grpcCredentials.createSsl(ca)),
    certified: new Client(ready.grpc, grpcCredentials.createSsl(ca, key, cert)),
  };
  env.WRIT_ENDPOINT = `https://${ready.grpc}`;
  env.WRIT_CA_FILE = file('ca.pem');
}

/** A line of the log for every call: it drops lines above 200 a second, and what is dropped cannot be searched. */
const LINES_PER_SECOND = 100;
let paced = { second: 0, calls: 0 };

async function pace(): Promise<void> {
  for (;;) {
    const second = now();
    if (paced.second !== second) paced = { second, calls: 0 };
    if (paced.calls < LINES_PER_SECOND) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  paced.calls += 1;
}

interface Caller {
  readonly authorization?: string;
  readonly certified?: boolean;
}

const as = (name: string): Caller => ({ authorization: `Bearer ${tokens[name]}` });

/** Calls it, and keeps what came back: errors with their details, and answers without what they are there to hand out. */
async function call(method: string, caller: Caller, fields: object | Buffer = {}): Promise<Outcome> {
  const rpc = rpcs.find((one) => one.method === method);
  if (rpc === undefined) throw new Error(`no RPC ${method}`);
  await pace();
  const request = Buffer.isBuffer(fields) ? fields : rpc.encode(fields);
  const client = caller.certified === true ? clients.certified : clients.plain;
  const outcome = await callRpc(client, rpc, request, authorized(caller.authorization));
  codes.set(method, (codes.get(method) ?? new Set()).add(outcome.code));
  if (outcome.failure !== null)
    written.add('errors over gRPC', outcome.failure.details, outcome.failure.metadata.getMap());
  const isStranger = caller.authorization === as('stranger').authorization;
  const answers = outcome.answers.map((answer) => textOf(withoutTokens(answer)));
  // What it presents itself may be said back to it.
  const presented = presentable.filter((handle) => request.includes(handle));
  const told = answers.map((text) => presented.reduce((left, handle) => left.replaceAll(handle, '(it)'), text));
  written.add(isStranger ? 'answers to a stranger' : 'answers over gRPC', ...(isStranger ? told : answers));
  return outcome;
}

/** The one answer of a call that must go well. */
async function ok<T>(method: string, caller: Caller, fields: object = {}): Promise<T> {
  const { code, answers, failure } = await call(method, caller, fields);
  if (code !== 'OK') throw new Error(`${method}: ${code} ${failure?.details}`);
  return answers[0] as T;
}

interface WithToken {
  outcome?: { $case: string; value: { token?: string } } | number;
  credentials?: WithToken[];
}

/** An answer without the credentials that it hands out, each of which is a secret from now on. */
function withoutTokens(answer: unknown): unknown {
  const { outcome, credentials = [] } = answer as WithToken;
  for (const one of [outcome, ...credentials.map((each) => each.outcome)]) {
    const value = typeof one === 'object' ? one.value : {};
    if (value.token === undefined || value.token === '') continue;
    secrets.addJwt('a credential', value.token);
    issued.push(value.token);
    value.token = '';
  }
  return answer;
}

/** Lease ids that a stranger is given to try. */
const presentable: string[] = [];
let saidBeforeFloods = '';
const issued: string[] = [];
const lastIssued = (): string => issued.at(-1) ?? '';

/** Over HTTP; all that comes back is kept, status, headers and body. */
async function get(
  route: string,
  headers: Record<string, string> = {},
  body = '',
  where = 'HTTP',
): Promise<{ status: number; body: string }> {
  await pace();
  const [method, path] = route.split(' ');
  return new Promise((resolve, reject) => {
    httpsRequest(`https://${http}${path}`, { method, ca, headers, agent: false }, async (response) => {
      const isEndless = response.headers['content-type'] === 'text/event-stream';
      const text = isEndless ? await beginningOf(response) : (await response.setEncoding('utf8').toArray()).join('');
      written.add(where, [response.statusCode, response.rawHeaders], text);
      if (path === '/metrics') written.add('metrics', text);
      resolve({ status: response.statusCode ?? 0, body: text });
    })
      .on('error', (error: ServiceError) => {
        // A request that is too large may be answered and cut off at once.
        written.add('HTTP', String(error));
        if (body.length > 10_000 || JSON.stringify(headers).length > 10_000) resolve({ status: 0, body: '' });
        else reject(error);
      })
      .end(body);
  });
}

/** What a stream says at once, and then it is left. */
async function beginningOf(response: IncomingMessage): Promise<string> {
  const { value } = await response.setEncoding('utf8')[Symbol.asyncIterator]().next();
  response.destroy();
  return String(value);
}

const scrape = () => get('GET /metrics', { authorization: `Bearer ${tokens.auditor}` });

/** One command line, with the token of a role; what it says is kept. */
async function command(...args: string[]): Promise<number> {
  return commandWith({}, ...args);
}

/** In this process, as the program runs it: starting one for each takes seconds. */
async function commandWith(more: Record<string, string>, ...args: string[]): Promise<number> {
  const said: string[] = [];
  const sink = { write: (text: string) => said.push(text) };
  const code = await runCli(args, { ...env, ...more }, { stdout: sink, stderr: sink });
  written.add('commands', ...said);
  return code;
}

interface Held {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly token: bigint;
}

/** A run that holds one resource. */
async function hold(resource: string, caller: Caller = as('runner'), more: object = {}): Promise<Held> {
  const { run } = await ok<{ run: { runId: string } }>('RunService/CreateRun', caller, {
    purpose: 'a test',
    allowed: [{ pattern: 'release/{env}', actions: ['*'] }],
    authorityEndsAt: seconds(now() + 3_600),
    idempotencyKey: randomUUID(),
    ...more,
  });
  const { outcome } = await ok<{ outcome: { $case: string; value: Lease } }>('LeaseService/AcquireWriteSet', caller, {
    runId: run.runId,
    entries: [{ resource, access: Access.ACCESS_WRITE, actions: ['promote'] }],
    ttl: seconds(120),
    idempotencyKey: randomUUID(),
    audiences: ['target', 'elsewhere'],
  });
  if (outcome.$case !== 'lease') throw new Error(`${resource} was not granted`);
  const { leaseId, entries } = outcome.value;
  const token = entries[0]?.fencingToken ?? 0n;
  presentable.push(leaseId);
  // The stranger may read its own.
  if (caller.authorization !== as('stranger').authorization)
    handles.add(`the lease of ${resource}`, leaseId).addWhole(`the fencing token of ${resource}`, String(token));
  return { runId: run.runId, leaseId, resource, token };
}

async function personsToken(more: object = {}): Promise<string> {
  const claims = { iss: ISSUER, aud: 'writ', sub: 'ci-1', email: 'alice@example.org', iat: now(), exp: now() + 3_600 };
  const token = await new SignJWT({ ...claims, ...more })
    .setProtectedHeader({ alg: 'ES256', kid: 'issuer-key' })
    .sign(issuerKey);
  secrets.addJwt('a token of the issuer', token);
  return token;
}

const write = (held: Held, more: object = {}) => ({
  resource: held.resource,
  action: 'promote',
  fencingToken: held.token,
  ...more,
});

describe('a full run', () => {
  let held: Held;

  it('of leases and checks, with and without a right to them', async () => {
    await ok('ConflictMapService/PutConflictMap', as('admin'), {
      document: MAP,
      expectedVersion: 0n,
      reason: 'a test',
    });
    held = await hold('release/prod', { certified: true }, { initiatorToken: await personsToken() });
    const check = (fields: object) => call('FenceService/CheckFence', as('target'), fields);
    await check({ leaseId: held.leaseId, writes: [write(held)] });
    await check({ leaseId: held.leaseId, writes: [write(held, { fencingToken: 7n })] });
    await check({ leaseId: held.leaseId, writes: [write(held, { fencingToken: held.token + 10n ** 13n })] });
    await check({ leaseId: held.leaseId, presenterRunId: 'f'.repeat(32), writes: [write(held)] });
    await check({ leaseId: 'e'.repeat(32), writes: [write(held)] });
    const stranger = await hold('release/other', as('stranger'));
    await call('LeaseService/AcquireWriteSet', as('stranger'), {
      runId: stranger.runId,
      entries: [{ resource: held.resource, access: Access.ACCESS_WRITE, actions: ['promote'] }],
      idempotencyKey: randomUUID(),
    });
    await call('LeaseService/FindBlockers', as('stranger'), { resource: held.resource });
    for (const method of ['GetLease', 'ReleaseLease', 'RevokeLease'])
      await call(`LeaseService/${method}`, as('stranger'), {
        runId: stranger.runId,
        leaseId: held.leaseId,
        lease: { $case: 'leaseId', value: held.leaseId },
        reason: 'curious',
      });
    await call('LeaseService/RenewLeases', as('stranger'), {
      runId: stranger.runId,
      renewals: [{ leaseId: held.leaseId }],
    });
    await ok('LeaseService/RenewLeases', as('runner'), { runId: held.runId, renewals: [{ leaseId: held.leaseId }] });
  });

  it('of credentials: bound, unbound, of a DPoP key, presented and introspected, forged and stolen', async () => {
    const pair = await generateKeyPair('ES256', { extractable: true });
    secrets.addPrivateKey('the DPoP key', await exportPKCS8(pair.privateKey));
    const thumbprint = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
    const jkt = { key: { $case: 'jkt', value: thumbprint } };
    const issue = async (caller: Caller, more: object = {}): Promise<string> => {
      await ok('CredentialService/IssueCredential', caller, {
        runId: held.runId,
        leaseId: held.leaseId,
        audience: 'target',
        ...more,
      });
      return lastIssued();
    };
    const bound = await issue({ certified: true });
    const plain = await issue(as('runner'));
    const withKey = await issue(as('runner'), { confirmation: jkt });
    const [header, payload, signature = ''] = plain.split('.');
    const forged = `${header}.${payload}.${signature.split('').reverse().join('')}`;
    secrets.addJwt('a forged credential', forged);
    const none = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`;
    for (const credential of [bound, plain, withKey, forged, none, 'x'.repeat(20_000), `${plain}.${plain}`]) {
      const writes = [{ resource: held.resource, action: 'promote' }];
      await call('FenceService/CheckFence', as('target'), { credential, writes });
      await call('FenceService/CheckFence', as('target'), { credential, leaseId: held.leaseId, writes });
      for (const caller of ['target', 'stranger', 'operator'])
        await call('CredentialService/IntrospectCredential', as(caller), { token: credential });
      await get('POST /oauth2/introspect', introspection('target'), `token=${credential}`);
      await get('POST /oauth2/introspect', introspection('runner'), `token=${credential}&token=${credential}`);
      // As a caller's own token it is nobody's.
      await call('LeaseService/GetLease', { authorization: `Bearer ${credential}` }, { leaseId: held.leaseId });
      await call('LeaseService/GetLease', { authorization: `DPoP ${credential}` }, { leaseId: held.leaseId });
    }
    await verifyOffline(plain, forged, withKey, pair);
    await ok('CredentialService/RevokeCredential', as('operator'), {
      subject: { $case: 'leaseId', value: held.leaseId },
      reason: 'leaked',
    });
    await call('FenceService/CheckFence', as('target'), {
      credential: plain,
      writes: [write(held, { fencingToken: 0n })],
    });
  });

  const introspection = (name: string) => ({
    authorization: `Bearer ${tokens[name]}`,
    'content-type': 'application/x-www-form-urlencoded',
  });

  async function verifyOffline(
    plain: string,
    forged: string,
    withKey: string,
    pair: { publicKey: CryptoKey; privateKey: CryptoKey },
  ): Promise<void> {
    const url = 'https://target.test/release/prod';
    const keys = JSON.parse((await get('GET /.well-known/jwks.json')).body) as JSONWebKeySet;
    const make = (audience: string) =>
      createCredentialVerifier({ issuer: WRIT_ISSUER, audience, keys, dpop: { requireNonce: true } });
    const verifier = make('target');
    const proof = await generateProof(pair, url, 'PUT', verifier.nonce(), withKey);
    const stolen = await generateProof(await generateKeyPair('ES256'), url, 'PUT', verifier.nonce(), withKey);
    for (const one of [proof, stolen]) secrets.addJwt('a DPoP proof', one);
    const presented = (token: string, with_: string) =>
      [token, { dpop: { proof: with_, method: 'PUT', url } }] as const;
    const refusals: string[] = [];
    for (const [token, more] of [
      [plain, {}],
      [forged, {}],
      [withKey, {}],
      presented(withKey, proof),
      presented(withKey, proof),
      presented(withKey, stolen),
      presented(withKey, `${proof}x`),
      presented(plain, proof),
    ] as const) {
      try {
        await verifier.verifyCredential(token, more);
      } catch (error) {
        if (!(error instanceof CredentialRefused)) throw error;
        refusals.push(error.reason);
        written.add('the offline verifier', inspect(error, { depth: null }), error.challenge);
      }
    }
    await make('elsewhere')
      .verifyCredential(plain)
      .catch((error: unknown) => written.add('the offline verifier', inspect(error, { depth: null })));
    expect(refusals).toEqual([
      'bad_signature',
      'proof_missing',
      'proof_replayed',
      'binding_mismatch',
      'proof_invalid',
      'not_bound',
    ]);
  }

  it('of every RPC, by every role and by what is nobody’s token', async () => {
    const own = await hold('release/walked');
    const expired = await personsToken({ exp: now() - 600 });
    const fields = {
      namespace: 'default',
      name: 'default',
      runId: own.runId,
      leaseId: own.leaseId,
      lease: { $case: 'leaseId', value: own.leaseId },
      subject: { $case: 'leaseId', value: own.leaseId },
      credential: lastIssued(),
      token: lastIssued(),
      audience: 'target',
      initiatorToken: expired,
      reason: 'a test',
      purpose: 'a test',
      keyId: 'A'.repeat(43),
      resource: own.resource,
      document: MAP,
      expectedVersion: 9n,
      idempotencyKey: randomUUID(),
      requestId: 'request-of-a-test',
      allowed: [{ pattern: 'release/{env}', actions: ['*'] }],
      authorityEndsAt: seconds(now() + 600),
      entries: [{ resource: own.resource, access: Access.ACCESS_WRITE, actions: ['promote'] }],
      writes: [{ resource: own.resource, action: 'promote', fencingToken: own.token }],
      renewals: [{ leaseId: own.leaseId }],
    };
    const unknown = makeToken().token;
    const password = `Basic ${Buffer.from(`admin:${unknown}`).toString('base64')}`;
    secrets.add('an unknown token', unknown).add('a password', password.slice(6));
    const callers: Caller[] = [
      ...ROLES.filter((role) => role !== 'admin' && role !== 'operator').map(as),
      as('stranger'),
      {},
      { certified: true, ...as('stranger') },
      { authorization: `Bearer ${unknown}` },
      { authorization: unknown },
      { authorization: password },
      { authorization: `Bearer ${await personsToken()}` },
      { authorization: `Bearer ${expired}` },
      { authorization: `Bearer ${await personsToken({ sub: 'nobody' })}` },
      { authorization: `Bearer ${unknown}${'x'.repeat(9_000)}` },
      { authorization: `Bearer ${unknown}${'x'.repeat(60_000)}` },
      as('operator'),
      as('admin'),
    ];
    for (const rpc of rpcs) {
      await call(rpc.method, as('admin'), Buffer.from(tokens.admin ?? ''));
      for (const caller of callers) await call(rpc.method, caller, fields);
    }
  }, 300_000);

  it('of every route, by everybody and in every wrong way', async () => {
    const token = tokens.auditor ?? '';
    const form = { authorization: `Bearer ${token}`, 'content-type': 'application/x-www-form-urlencoded' };
    for (const route of [...ROUTES, 'GET /nothing/here', 'DELETE /metrics']) {
      const headers: Record<string, string>[] = [
        {},
        { authorization: `Bearer ${token}` },
        { authorization: `Bearer ${tokens.stranger}` },
        { authorization: token },
        { authorization: `Bearer ${token}x` },
        { authorization: `Bearer ${await personsToken()}` },
        { authorization: `Bearer ${token}${'x'.repeat(9_000)}` },
        { authorization: `Bearer ${token}${'x'.repeat(30_000)}` },
        { authorization: `DPoP ${lastIssued()}`, dpop: lastIssued() },
        { ...form, cookie: `token=${token}` },
      ];
      for (const one of headers) await get(route, one);
      await get(`${route}?access_token=${token}`);
      const json = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      if (route.includes(' /v1/')) await get(route, json, JSON.stringify({ token, [token]: token, runId: token }));
      if (!route.startsWith('GET')) await get(route, form, `token=${token}&more=${'x'.repeat(70_000)}`);
    }
    expect((await scrape()).status).toBe(200);
  });

  it('of people who sign in by a browser, and of what they do then', async () => {
    const json = { 'content-type': 'application/json', origin: `https://${http}` };
    const signIn = (body: object, more: object = {}) =>
      get('POST /auth/session', { ...json, ...more }, JSON.stringify(body));
    for (const token of [tokens.auditor, tokens.stranger, lastIssued(), await personsToken()]) {
      await signIn({ token });
      await signIn({ code: token });
      await signIn({ token: `${token} ` });
      await signIn({ token }, { origin: 'https://elsewhere.example' });
      await get('GET /auth/session', { cookie: `__Host-writ-session=${token}` });
      await get(`GET /auth/oidc/callback?code=${token}&state=${token}`, { cookie: `__Host-writ-sign-in=${token}` });
      await get(`DELETE /auth/session?token=${token}`, { ...json, 'writ-csrf': token ?? '' });
    }
    expect((await signIn({ token: tokens.auditor })).status).not.toBe(500);
  });

  it('of gateways that ask, with what runs present and what they should not', async () => {
    const own = await hold('release/gateway', { certified: true });
    const credential = lastIssued();
    const plain = await hold('release/gateway-plain');
    const unbound = lastIssued();
    const unknown = makeToken().token;
    secrets.add('a token in the place of a credential', unknown);
    const certificate = encodeURIComponent(readFileSync(file('runner.pem'), 'utf8'));
    const bearer = (token: string) => ({ 'writ-authorization': `Bearer ${token}` });
    const lease = (held: Held, token = held.token) => ({
      'writ-lease': held.leaseId,
      'writ-fencing-token': String(token),
    });
    const presented: Record<string, string>[] = [
      {},
      { ...bearer(credential), 'writ-presenter-certificate': certificate },
      bearer(credential),
      bearer(unbound),
      bearer(`${unbound}x`),
      bearer(unknown),
      { 'writ-authorization': `DPoP ${unbound}`, dpop: unbound },
      { 'writ-authorization': unknown },
      lease(plain),
      lease(plain, 7n),
      { ...lease(plain), ...bearer(unbound) },
      { ...lease(plain), ...bearer(unknown) },
      { ...lease(own), 'writ-fencing-token': `${own.token},${own.token}` },
      { ...lease(own), 'writ-presenter-certificate': unknown },
    ];
    const authorization = `Bearer ${tokens.target}`;
    const statuses = new Set<number>();
    for (const path of ['/releases/gateway', '/releases/gateway-plain', '/elsewhere', '/a/../b'])
      for (const headers of presented) {
        const request = { 'x-original-method': 'PUT', 'x-original-uri': path, 'x-original-host': 'service.test' };
        const { status } = await get('GET /v1/fence/check', { authorization, ...request, ...headers }, '', 'gateways');
        statuses.add(status);
      }
    for (const status of [200, 400, 401, 403, 409]) expect(statuses).toContain(status);
    const properties: object[] = [
      { credential: unbound },
      { credential: `${unbound}x` },
      { credential: unknown, cnf: { jkt: 'A'.repeat(43) } },
      { lease_id: plain.leaseId, fencing_token: String(plain.token) },
      { lease_id: plain.leaseId, fencing_token: '7' },
      { lease_id: plain.leaseId, fencing_token: unknown },
      { token: unknown },
    ];
    for (const each of properties) {
      const question = {
        subject: { type: 'run', id: plain.runId, properties: each },
        action: { name: 'promote' },
        resource: { type: 'resource', id: plain.resource },
      };
      const json = { authorization, 'content-type': 'application/json' };
      const text = JSON.stringify(question);
      await get('POST /access/v1/evaluation', json, text, 'gateways');
      await get('POST /access/v1/evaluations', json, JSON.stringify({ evaluations: [question, each] }), 'gateways');
      await get('POST /access/v1/evaluation', json, `${text.slice(0, -1)}, "x": ${unknown}}`, 'gateways');
    }
  });

  it('of keys that rotate and retire', async () => {
    await ok('CredentialService/RotateSigningKey', as('admin'), { reason: 'a laptop was lost', force: true });
    const last = await hold('release/retired');
    const old = issued.find((token) => decodeProtectedHeader(token).kid !== decodeProtectedHeader(lastIssued()).kid);
    const kid = decodeProtectedHeader(old ?? lastIssued()).kid;
    await ok('CredentialService/RetireSigningKey', as('admin'), { keyId: kid, reason: 'the same' });
    await call('FenceService/CheckFence', as('target'), {
      credential: old,
      writes: [write(last, { fencingToken: 0n })],
    });
    await rememberSigningKeys();
  });

  /** What the sealed keys hold, for whoever has the key-encryption key. */
  async function rememberSigningKeys(): Promise<void> {
    const sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    const { rows } = await sql.query<{ sealed_private: string }>(
      'SELECT sealed_private FROM writ.signing_key WHERE sealed_private IS NOT NULL',
    );
    await sql.end();
    for (const { sealed_private: sealed } of rows) {
      const opened = await compactDecrypt(sealed, Buffer.from(env.WRIT_KEY_ENCRYPTION_KEY ?? '', 'base64url'));
      const { d } = JSON.parse(Buffer.from(opened.plaintext).toString('utf8')) as { d: string };
      secrets.addBytes('a signing key', Buffer.from(d, 'base64url'));
    }
    expect(rows.length).toBeGreaterThanOrEqual(2);
  }

  it('of commands, in words and as JSON, with good tokens and bad ones', async () => {
    const unknown = makeToken().token;
    secrets.add('an unknown token of a command', unknown);
    for (const form of [[], ['--json']]) {
      for (const [role, ...args] of [
        ['operator', 'status'],
        ['operator', 'who', held.resource],
        ['operator', 'why', held.leaseId],
        ['operator', 'why', held.runId],
        ['operator', 'lease', 'list'],
        ['operator', 'run', 'list'],
        ['operator', 'keys', 'list'],
        ['auditor', 'audit', 'events'],
        [
          'target',
          'check',
          '--lease',
          held.leaseId,
          '--resource',
          held.resource,
          '--action',
          'promote',
          '--token',
          '7',
        ],
        ['stranger', 'who', held.resource],
        ['stranger', 'lease', 'get', held.leaseId],
        ['runner', 'keys', 'rotate', '--reason', 'may I'],
      ] as const)
        await commandWith({ WRIT_TOKEN: tokens[role] ?? '' }, ...args, ...form);
      await commandWith({ WRIT_TOKEN: unknown }, 'status', ...form);
      await commandWith({ WRIT_TOKEN: `${unknown}é` }, 'status', ...form);
      await command('doctor', ...form);
      await commandWith({ WRIT_DATABASE_URL: `${database.url}x` }, 'doctor', ...form);
      await commandWith({ WRIT_DATABASE_URL: `${database.url}x` }, 'migrate', ...form);
    }
    const exported = file('export.ndjson');
    const auditor = { WRIT_TOKEN: tokens.auditor ?? '' };
    expect(await commandWith(auditor, 'audit', 'export', '--output', exported)).toBe(0);
    written.add('the export', readFileSync(exported, 'utf8'));
    expect(await command('audit', 'verify', exported)).toBe(0);
  }, 240_000);

  it('of files that are broken while they are watched', async () => {
    const said = (text: string, times = 1) =>
      eventually(
        () => coordinator.said().split(text).length - 1,
        (count) => count >= times,
      );
    // A token put where its hash belongs, and a file that was cut off in the middle of one.
    const misplaced = JSON.stringify(principals()).replace(hashToken(tokens.admin ?? ''), tokens.admin ?? '');
    writeFileSync(file('principals.json'), misplaced);
    await said('the new principals file is not used');
    writeFileSync(file('principals.json'), misplaced.slice(0, misplaced.indexOf(tokens.admin ?? '') + 30));
    await said('the new principals file is not used', 2);
    writeFileSync(file('principals.json'), `{"token": ${tokens.admin}}`);
    await said('the new principals file is not used', 3);
    writePrincipals();
    await said('principals file reloaded');
    const key = readFileSync(file('server-key.pem'), 'utf8');
    writeFileSync(file('server-key.pem'), key.slice(0, 150));
    await said('the new TLS files are not used');
    writeFileSync(file('server-key.pem'), key);
    await said('TLS files reloaded');
  });

  it('of a database that is killed and comes back', async () => {
    await database.kill9();
    await eventually(
      async () => (await call('LeaseService/GetLease', as('operator'), { leaseId: held.leaseId })).code,
      (code) => code === 'UNAVAILABLE',
    );
    for (const method of [
      'CredentialService/IssueCredential',
      'LeaseService/RenewLeases',
      'CredentialService/RotateSigningKey',
    ])
      await call(method, as(method.endsWith('Key') ? 'admin' : 'runner'), {
        runId: held.runId,
        leaseId: held.leaseId,
        audience: 'target',
        renewals: [{ leaseId: held.leaseId }],
        reason: 'a test',
      });
    await get('GET /readyz');
    await get('POST /oauth2/introspect', introspection('target'), `token=${lastIssued()}`);
    await database.restart();
    await eventually(
      async () => (await call('RunService/StopRun', as('operator'), { runId: held.runId, reason: 'a test' })).code,
      (code) => code === 'OK',
      30_000,
    );
  }, 120_000);

  it('of floods: of strangers, and of one principal above its rate', async () => {
    const strangers = Array.from({ length: 300 }, () => makeToken().token);
    for (const token of strangers) secrets.add('the token of a flood', token);
    const getLease = rpcs.find(({ method }) => method === 'LeaseService/GetLease') as Rpc;
    const flood = async (authorizations: readonly string[]) => {
      const request = getLease.encode({ leaseId: held.leaseId });
      const calls = authorizations.map((one) => callRpc(clients.plain, getLease, request, authorized(one)));
      const outcomes = await Promise.all(calls);
      for (const { failure, answers } of outcomes)
        written.add('errors over gRPC', failure?.details ?? '', failure?.metadata.getMap() ?? '', ...answers);
      return outcomes.map(({ code }) => code);
    };
    saidBeforeFloods = coordinator.said();
    expect(new Set(await flood(strangers.map((token) => `Bearer ${token}`)))).toEqual(new Set(['UNAUTHENTICATED']));
    const busy = Array.from({ length: 700 }, () => `Bearer ${tokens.stranger}`);
    await eventually(
      () => flood(busy),
      (seen) => seen.includes('RESOURCE_EXHAUSTED'),
    );
    await scrape();
  });

  it('of starts that fail: a wrong password, broken files, another key-encryption key', async () => {
    await coordinator.stop();
    const failing = async (more: Record<string, string>): Promise<number | null> => {
      const one = watchCoordinator({ ...env, ...more });
      const code = await Promise.race([one.ended, one.ready.then(() => one.stop())]);
      written.add('starts that fail', one.said());
      return code;
    };
    const wrong = new URL(database.url);
    const key = randomBytes(32);
    wrong.password = `wrong-${key.toString('hex')}`;
    secrets.add('a wrong password', wrong.password).addBytes('another key-encryption key', key);
    expect(await failing({ WRIT_DATABASE_URL: wrong.href })).toBe(4);
    expect(await failing({ WRIT_KEY_ENCRYPTION_KEY: `${key.toString('base64url')}x` })).toBe(2);
    writeFileSync(file('broken-key'), `${key.toString('hex')}\n`);
    const fromFile = { WRIT_KEY_ENCRYPTION_KEY: '', WRIT_KEY_ENCRYPTION_KEY_FILE: file('broken-key') };
    expect(await failing(fromFile)).toBe(2);
    writeFileSync(file('broken-principals.json'), `{"principals": [{"name": "a", "token": "${tokens.admin}"`);
    expect(await failing({ WRIT_TOKENS_FILE: file('broken-principals.json') })).toBe(2);
    // It starts, and tells that it cannot open the keys.
    await failing({ WRIT_KEY_ENCRYPTION_KEY: key.toString('base64url') });
  }, 120_000);

  it('in the embedded mode, with a development token that somebody damaged', async () => {
    const dataDir = file('embedded');
    const own = { WRIT_DATA_DIR: dataDir, WRIT_LOG_LEVEL: 'trace', WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' };
    // Without what the other installation is told.
    const plain = Object.fromEntries(Object.keys(env).map((name) => [name, '']));
    const one = watchCoordinator(own);
    processes.push(one);
    const { grpc } = await one.ready;
    const dev = JSON.parse(readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8')) as Record<string, string>;
    for (const [role, token] of Object.entries(dev)) secrets.add(`the development token of ${role}`, token);
    secrets.add('the password of the embedded database', readFileSync(join(dataDir, 'password'), 'utf8').trim());
    const embeddedKey = readFileSync(join(dataDir, 'key-encryption-key'), 'utf8').trim();
    secrets.add('the embedded key-encryption key', embeddedKey);
    secrets.add('the token of the console', makeConsolePrincipal(Buffer.from(embeddedKey, 'base64url')).token);
    for (const args of [['status'], ['status', '--json'], ['doctor'], ['doctor', '--json']]) {
      const code = await commandWith({ ...plain, ...own, WRIT_ENDPOINT: grpc }, ...args);
      expect([args, code]).toEqual([args, 0]);
    }
    await one.stop();
    written.add('the embedded coordinator', one.said());
    const whole = readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8');
    for (const damaged of [whole.replace(/_(.{20})/, '_$1"'), whole.slice(0, 60)]) {
      writeFileSync(join(dataDir, 'dev-tokens.json'), damaged);
      const again = watchCoordinator(own);
      expect(await again.ended).toBe(2);
      written.add('starts that fail', again.said());
      await commandWith({ ...plain, ...own }, 'status');
    }
    written.add('files of the embedded mode', ...textFiles(dataDir));
    written.add('the log of Postgres', readFileSync(join(dataDir, 'postgres.log'), 'latin1'));
  }, 180_000);

  it('went everywhere', () => {
    written.add('the log', coordinator.said());
    written.add('spans', readFileSync(file('spans.ndjson'), 'utf8'));
    written.add('the log of Postgres', readFileSync(join(database.dataDir, 'postgres.log'), 'latin1'));
    written.add('files of the data directory', ...textFiles(file('data')));
    const checkpointKey = readFileSync(join(file('data'), 'checkpoint-key.pem'), 'utf8');
    secrets.addPrivateKey('the key of checkpoints', checkpointKey);
    expect([...codes.keys()].sort()).toEqual(rpcs.map(({ method }) => method).sort());
    const all = new Set([...codes.values()].flatMap((seen) => [...seen]));
    for (const code of ['OK', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'NOT_FOUND', 'UNAVAILABLE'])
      expect(all).toContain(code);
    expect([...all].filter((code) => ['INTERNAL', 'UNKNOWN', 'UNIMPLEMENTED'].includes(code))).toEqual([]);
    for (const method of ['IssueCredential', 'RevokeCredential', 'RotateSigningKey', 'RetireSigningKey'])
      expect(codes.get(`CredentialService/${method}`)).toContain('OK');
    expect(issued.length).toBeGreaterThanOrEqual(6);
    expect(written.of('spans').split('\n').length).toBeGreaterThan(rpcs.length);
    // What was left out of the log could not be searched. In the floods it is left out on purpose.
    expect(saidBeforeFloods).toContain('"rpc"');
    expect(saidBeforeFloods).not.toContain('suppressed_lines');
  });

  /** What lies in a data directory but the files that are there to hold a secret, and the database itself. */
  function textFiles(path: string): string[] {
    const holders = ['password', 'key-encryption-key', 'dev-tokens.json', 'checkpoint-key.pem', 'pgdata'];
    return readdirSync(path, { withFileTypes: true })
      .filter(({ name }) => !holders.includes(name))
      .flatMap((entry) => {
        const inner = join(path, entry.name);
        return entry.isDirectory() ? textFiles(inner) : [readFileSync(inner, 'latin1')];
      });
  }

  it('left every table without a secret', async () => {
    const sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    const { rows: tables } = await sql.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables WHERE table_schema = 'writ'`,
    );
    for (const { name } of tables) {
      const { rows } = await sql.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} AS t`);
      written.add('the database', ...rows.map(({ row }) => row));
    }
    await sql.end();
    // Events are there in full, so that the search means something.
    expect(written.of('the database')).toContain(held.leaseId);
    expect(written.of('the export')).toContain('credentials_issued');
  });
});

describe('after it', () => {
  it('no secret stands in any log, error, event, metric, span, answer or file', () => {
    expect(written.leaks(secrets)).toEqual([]);
  });

  it('lease ids and fencing tokens stand only where they are meant to be read', () => {
    const meant = ['the database', 'the export', 'answers over gRPC', 'commands', 'HTTP'];
    expect(written.leaks(handles, meant)).toEqual([]);
    // Over HTTP a target reads the claims of what was presented to it, and metrics name nobody.
    expect(handles.findIn(written.of('metrics'))).toEqual([]);
  });
});

describe('the search itself', () => {
  const secret = 'k3J9-xQ2_vLm8TzR4wYb';
  const found = (text: string) => new Secrets().add('it', secret).findIn(text).length;

  it.each([
    ['as it is', `token=${secret}`],
    ['cut off', `…${secret.slice(4, 17)}…`],
    ['in base64, whatever stands before', Buffer.from(`Basic a:${secret}`).toString('base64')],
    ['in hexadecimal', Buffer.from(`x${secret}`).toString('hex')],
    ['in a URL', `?t=${encodeURIComponent(secret)}`],
    ['in JSON', JSON.stringify({ body: JSON.stringify({ secret }) })],
  ])('finds a secret %s', (_, text) => {
    expect(found(text)).toBe(1);
  });

  it('finds nothing where there is nothing', () => {
    expect(found('k3J9-xQ2_vL is the beginning, and 8TzR4wYb the end')).toBe(0);
  });
});
