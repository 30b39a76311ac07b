import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { Client, credentials as grpcCredentials, type ServiceError } from '@grpc/grpc-js';
import { type CryptoKey, exportJWK, exportPKCS8, generateKeyPair, SignJWT } from 'jose';
import { hashToken, makeToken } from '../../../src/auth/tokens.js';
import { runCli } from '../../../src/cli/program.js';
import { Access, type Lease } from '../../../src/gen/writ/v1/types.js';
import { LOCAL_NAMES, testAuthority } from '../certificates.js';
import { authorized, callRpc, everyRpc, type Outcome, type Rpc } from '../every-rpc.js';
import { makeTestDirectory } from '../global-setup.js';
import { type PrivatePostgres, startPrivatePostgres } from '../postgres.js';
import { Secrets, textOf, Written } from '../secrets.js';
import { type WatchedProcess, watchCoordinator } from '../watched-coordinator.js';

/** An installation, all that it writes, and every secret in it (A3). */

export const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], ttl: 120s, max_ttl: 5m, actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;
const ROUTE_TABLE = `
version: 1
routes:
  - { method: PUT, path: "/releases/{env}", writes: [{ resource: "release/{env}", action: promote, change_class: shared_pointer, resolver: owner }] }
`;
export const ROLES = ['admin', 'operator', 'auditor', 'approver', 'runner', 'target'] as const;
const ISSUER = 'https://issuer.test';
export const WRIT_ISSUER = 'https://writ.test';

export const secrets = new Secrets();
export const handles = new Secrets();
export const written = new Written();
/** By method: how its calls ended. */
export const codes = new Map<string, Set<string>>();

export let directory: string;
export let database: PrivatePostgres;
export let coordinator: WatchedProcess;
export let env: Record<string, string>;
export let rpcs: Rpc[];
export let clients: Record<'plain' | 'certified', Client>;
export let http: string;
export let ca: Buffer;
let issuerKey: CryptoKey;
export const tokens: Record<string, string> = {};
export const processes: WatchedProcess[] = [];

export const file = (name: string): string => join(directory, name);
export const seconds = (count: number) => ({ seconds: BigInt(count), nanos: 0 });
export const now = (): number => Math.floor(Date.now() / 1_000);

/** What is held throughout, by a certified runner for a verified person. */
export let held: Held;

export async function begin(): Promise<void> {
  directory = await makeTestDirectory('secrets');
  database = await startPrivatePostgres();
  rpcs = await everyRpc();
  secrets.add('the password of the database', new URL(database.url).password);
  await makeFiles();
  await start();
}

export async function holdThroughout(): Promise<Held> {
  held = await hold('release/prod', { certified: true }, { initiatorToken: await personsToken() });
  return held;
}

export async function end(): Promise<void> {
  for (const client of Object.values(clients ?? {})) client.close();
  for (const one of processes) await one.stop();
  await database?.stop();
  await rm(directory, { recursive: true, force: true });
}

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

export function principals(): object {
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

export const writePrincipals = (): void => writeFileSync(file('principals.json'), JSON.stringify(principals()));

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

export interface Caller {
  readonly authorization?: string;
  readonly certified?: boolean;
}

export const as = (name: string): Caller => ({ authorization: `Bearer ${tokens[name]}` });

/** Calls it, and keeps what came back: errors with their details, and answers without what they are there to hand out. */
export async function call(method: string, caller: Caller, fields: object | Buffer = {}): Promise<Outcome> {
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
export async function ok<T>(method: string, caller: Caller, fields: object = {}): Promise<T> {
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

/** What had been logged before the floods, in which lines are left out. */
export const noted = { beforeFloods: '' };

/** Lease ids that a stranger is given to try. */
export const presentable: string[] = [];
export const issued: string[] = [];
export const lastIssued = (): string => issued.at(-1) ?? '';

/** Over HTTP; all that comes back is kept, status, headers and body. */
export async function get(
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

export const scrape = () => get('GET /metrics', { authorization: `Bearer ${tokens.auditor}` });

/** One command line, with the token of a role; what it says is kept. */
export async function command(...args: string[]): Promise<number> {
  return commandWith({}, ...args);
}

/** In this process, as the program runs it: starting one for each takes seconds. */
export async function commandWith(more: Record<string, string>, ...args: string[]): Promise<number> {
  const said: string[] = [];
  const sink = { write: (text: string) => said.push(text) };
  const code = await runCli(args, { ...env, ...more }, { stdout: sink, stderr: sink });
  written.add('commands', ...said);
  return code;
}

export interface Held {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly token: bigint;
}

/** A run that holds one resource. */
export async function hold(resource: string, caller: Caller = as('runner'), more: object = {}): Promise<Held> {
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

export async function personsToken(more: object = {}): Promise<string> {
  const claims = { iss: ISSUER, aud: 'writ', sub: 'ci-1', email: 'alice@example.org', iat: now(), exp: now() + 3_600 };
  const token = await new SignJWT({ ...claims, ...more })
    .setProtectedHeader({ alg: 'ES256', kid: 'issuer-key' })
    .sign(issuerKey);
  secrets.addJwt('a token of the issuer', token);
  return token;
}

export const write = (held: Held, more: object = {}) => ({
  resource: held.resource,
  action: 'promote',
  fencingToken: held.token,
  ...more,
});

export const introspection = (name: string) => ({
  authorization: `Bearer ${tokens[name]}`,
  'content-type': 'application/x-www-form-urlencoded',
});

/** What lies in a data directory but the files that are there to hold a secret, and the database itself. */
export function textFiles(path: string): string[] {
  const holders = ['password', 'key-encryption-key', 'dev-tokens.json', 'checkpoint-key.pem', 'pgdata'];
  return readdirSync(path, { withFileTypes: true })
    .filter(({ name }) => !holders.includes(name))
    .flatMap((entry) => {
      const inner = join(path, entry.name);
      return entry.isDirectory() ? textFiles(inner) : [readFileSync(inner, 'latin1')];
    });
}
