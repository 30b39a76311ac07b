import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { CertificateIndex } from '../../src/auth/certificates.js';
import { subjectOf } from '../../src/auth/dev-certificates.js';
import type { Principal } from '../../src/auth/principal.js';
import { hashToken } from '../../src/auth/tokens.js';
import { type ConnectOptions, connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { Fault } from '../../src/domain/fault.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics, type Metrics } from '../../src/platform/metrics.js';
import { openServerTls, type ServerTls, TlsFilesError } from '../../src/platform/server-tls.js';
import type { WritApi } from '../../src/services/api.js';
import { freePort } from '../../src/storage/postgres/embedded/port.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { HttpServer } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';
import { LOCAL_NAMES, type TestAuthority, testAuthority } from '../support/certificates.js';
import { testSignIn } from '../support/sign-in.js';

/** Both ports in TLS, with client certificates, over real sockets. */

const SPIFFE = 'spiffe://example.org/ns/ci/sa/release';

let directory: string;
let authority: TestAuthority;
let stranger: TestAuthority;
let grpc: GrpcServer;
let http: HttpServer;
let tls: ServerTls;
let metrics: Metrics;
let endpoint: string;
let httpAddress: string;
let seen: Principal | undefined;
let log: string[];
const clients: WritClient[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-tls-'));
  [authority, stranger] = [await testAuthority(directory), await testAuthority(directory, 'other-ca')];
  const spiffe = { names: [{ type: 'url' as const, value: SPIFFE }] };
  await authority.issue('spiffe', spiffe);
  await authority.issue('subject');
  await authority.issue('nobody');
  await authority.issue('spiffe-in-subject', { commonName: SPIFFE });
  await authority.issue('two-ids', { names: [...spiffe.names, { type: 'url', value: 'spiffe://example.org/other' }] });
  await authority.issue('expired', { ...spiffe, days: -1, beginsInDays: -2 });
  await authority.issue('for-servers', { ...spiffe, use: 'server' });
  await stranger.issue('of-another-ca', spiffe);
});

afterAll(() => rm(directory, { recursive: true, force: true }));

beforeEach(() => authority.issue('server', { use: 'server', names: LOCAL_NAMES }));

afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  tls?.stop();
  await Promise.all([grpc?.drain(0), http?.stop(0)]);
});

const file = (name: string): string => join(directory, name);

async function start(more: { clientCerts?: 'optional' | 'required'; clientCaFile?: string | null } = {}, grpcPort = 0) {
  metrics = createMetrics();
  log = [];
  const logger = createLogger('debug', { write: (line) => void log.push(line) });
  const pair = { certFile: file('server.pem'), keyFile: file('server-key.pem') };
  const config = { ...pair, clientCaFile: authority.caFile, clientCerts: 'optional' as const, ...more };
  tls = await openServerTls(config, logger, 20);
  const subject = subjectOf({ cert: await readFile(file('subject.pem'), 'utf8'), key: '' });
  const authenticator = createCallerAuthenticator({
    principals: [
      {
        name: 'svc:release',
        roles: ['runner', 'auditor'],
        certificates: [{ spiffeId: SPIFFE }],
        tokenSha256: hashToken('secret-release'),
      },
      { name: 'svc:subject', roles: ['runner', 'auditor'], certificates: [{ subject }] },
      { name: 'other', roles: ['runner'], tokenSha256: hashToken('secret-other') },
    ],
    certificates: CertificateIndex,
    refused: metrics.callerRefused,
  });
  const api = {
    getLease: async (context: { principal: Principal }) => {
      seen = context.principal;
      throw new Fault('not_found', 'LEASE_NOT_FOUND', 'no such lease');
    },
  } as unknown as WritApi;
  grpc = new GrpcServer({ limits: readConfig({}).limits, metrics, log: logger });
  http = new HttpServer({
    ready: () => ({ ready: true, reasons: [], warnings: tls.warnings() }),
    api: () => api,
    authenticator,
    signIn: () => testSignIn(authenticator, { secure: true }),
    blockerKey: () => Buffer.from('key'),
    limits: readConfig({}).limits,
    rateLimiter: createRateLimiter(0),
    metrics,
    log: logger,
  });
  endpoint = `https://${await grpc.listen('127.0.0.1', grpcPort, tls)}`;
  httpAddress = await http.listen('127.0.0.1', 0, tls);
  grpc.serve({ api, authenticator, blockerKey: Buffer.from('key') });
}

function connect(options: Partial<ConnectOptions> & { as?: string } = {}): WritClient {
  const { as, ...more } = options;
  const pair = as === undefined ? {} : { certFile: file(`${as}.pem`), keyFile: file(`${as}-key.pem`) };
  const client = connectWrit({ endpoint, tls: { caFile: authority.caFile, ...pair }, ...more });
  clients.push(client);
  return client;
}

/** Who the coordinator takes the caller for, or the reason of its refusal. */
async function caller(options: Parameters<typeof connect>[0]): Promise<string> {
  seen = undefined;
  try {
    await connect(options).lease.getLease({ leaseId: 'x' });
  } catch (error) {
    if (!(error instanceof WritError)) throw error;
    return (seen as Principal | undefined)?.name ?? (error.reason || error.code);
  }
  throw new Error('unreachable');
}

/** The same over HTTP: the status, and the reason of a problem. */
function get(
  path: string,
  options: { as?: string; token?: string; method?: string; headers?: Record<string, string> } = {},
): Promise<string> {
  const pem = (name: string) => readFile(file(name));
  return Promise.all([
    pem('ca.pem'),
    ...(options.as === undefined ? [] : [pem(`${options.as}.pem`), pem(`${options.as}-key.pem`)]),
  ]).then(
    ([ca, cert, key]) =>
      new Promise((resolve, reject) => {
        const authorization = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
        const headers = { ...authorization, ...options.headers };
        const { method = 'GET' } = options;
        request(`https://${httpAddress}${path}`, { ca, cert, key, method, headers, agent: false }, async (response) => {
          const body = (await response.setEncoding('utf8').toArray()).join('');
          const { reason } = response.statusCode === 200 ? { reason: '' } : (JSON.parse(body) as { reason: string });
          resolve(`${response.statusCode} ${reason}`.trim());
        })
          .on('error', reject)
          .end();
      }),
  );
}

describe('a client certificate', () => {
  const cases: [what: string, as: string, grpc: string, http: string][] = [
    ['with a SPIFFE id', 'spiffe', 'svc:release', '200'],
    ['without one, by its subject', 'subject', 'svc:subject', '200'],
    ['that nobody is known by', 'nobody', 'UNAUTHENTICATED', '401 UNAUTHENTICATED'],
    ['with the SPIFFE id in its subject alone', 'spiffe-in-subject', 'UNAUTHENTICATED', '401 UNAUTHENTICATED'],
    ['with two ids', 'two-ids', 'CERTIFICATE_REJECTED', '401 CERTIFICATE_REJECTED'],
    ['of another authority', 'of-another-ca', 'UNAUTHENTICATED', '401 UNAUTHENTICATED'],
    ['that has expired', 'expired', 'UNAUTHENTICATED', '401 UNAUTHENTICATED'],
    ['for servers', 'for-servers', 'UNAUTHENTICATED', '401 UNAUTHENTICATED'],
  ];

  it.each(cases)('%s: who calls', async (_, as, overGrpc, overHttp) => {
    await start();
    expect(await caller({ as })).toBe(overGrpc);
    expect(await get('/metrics', { as })).toBe(overHttp);
  });

  it('in a browser lets no page of another origin change anything', async () => {
    await start();
    const introspect = (headers: Record<string, string>) =>
      get('/oauth2/introspect', { as: 'spiffe', method: 'POST', headers });
    expect(await introspect({ origin: 'https://evil.example' })).toBe('403 CROSS_ORIGIN');
    expect(await introspect({ 'sec-fetch-site': 'cross-site' })).toBe('403 CROSS_ORIGIN');
    // Past the door: the principal lacks the role, or the API of this test the method.
    for (const headers of [{}, { origin: `https://${httpAddress}` }] as Record<string, string>[])
      expect(await introspect(headers)).not.toContain('CROSS_ORIGIN');
  });

  it('binds the session: its thumbprint goes with the principal', async () => {
    await start();
    await caller({ as: 'spiffe' });
    const thumbprint = seen?.certificateThumbprint;
    expect(thumbprint).toMatch(/^[\w-]{43}$/);
    expect(await caller({ as: 'nobody', token: 'secret-release' })).toBe('svc:release');
    expect(seen?.certificateThumbprint).toMatch(/^[\w-]{43}$/);
    expect(seen?.certificateThumbprint).not.toBe(thumbprint);
    expect(await caller({ token: 'secret-release' })).toBe('svc:release');
    expect(seen?.certificateThumbprint).toBeUndefined();
  });

  it('and a token must be of one principal', async () => {
    await start();
    expect(await caller({ as: 'spiffe', token: 'secret-release' })).toBe('svc:release');
    expect(await caller({ as: 'spiffe', token: 'secret-other' })).toBe('CREDENTIALS_DISAGREE');
    expect(await get('/metrics', { as: 'spiffe', token: 'secret-other' })).toBe('401 CREDENTIALS_DISAGREE');
    expect(await caller({ as: 'of-another-ca', token: 'secret-other' })).toBe('other');
    expect(await caller({ as: 'spiffe', token: 'secret-unknown' })).toBe('UNAUTHENTICATED');
    const { text } = await metrics.render();
    expect(text).toContain('writ_callers_refused_total{cause="disagree"} 2');
    expect(log.join('')).not.toMatch(/secret-|BEGIN/);
  });

  it('counts for nothing where none is asked for', async () => {
    await start({ clientCaFile: null });
    expect(await caller({ as: 'spiffe' })).toBe('UNAUTHENTICATED');
    expect(await get('/metrics', { as: 'spiffe' })).toBe('401 UNAUTHENTICATED');
  });

  it('that ends while its connection lives counts for nothing from then on', async () => {
    await start();
    // Long enough to connect with, on a machine that is busy with other things.
    const seconds = 8;
    await authority.issue('short', { names: [{ type: 'url', value: SPIFFE }], days: seconds / 86_400 });
    const client = connect({ as: 'short' });
    const outcome = async () => {
      seen = undefined;
      const { reason } = await client.lease.getLease({ leaseId: 'x' }).then(
        () => ({ reason: '' }),
        (error: WritError) => error,
      );
      return (seen as Principal | undefined)?.name ?? reason;
    };
    expect(await outcome()).toBe('svc:release');
    await expect.poll(outcome, { timeout: 30_000 }).toBe('CERTIFICATE_REJECTED');
    // It is the connection of before: a new one could not even be made with it.
    expect(await outcome()).toBe('CERTIFICATE_REJECTED');
    const { text } = await metrics.render();
    expect(text).toContain('writ_callers_refused_total{cause="certificate"}');
  });

  it('that is required is needed for a connection at all', async () => {
    await start({ clientCerts: 'required' });
    expect(await caller({ as: 'spiffe' })).toBe('svc:release');
    for (const as of [undefined, 'of-another-ca', 'expired', 'for-servers']) {
      expect(await caller({ token: 'secret-release', timeoutMs: 3_000, ...(as === undefined ? {} : { as }) })).toBe(
        'UNAVAILABLE',
      );
      await expect(get('/healthz', as === undefined ? {} : { as })).rejects.toThrow();
    }
  });
});

describe('a client', () => {
  it('believes no server that its authority does not vouch for, or that is another', async () => {
    await start();
    expect(await caller({ token: 'secret-other', timeoutMs: 3_000, tls: { caFile: stranger.caFile } })).toBe(
      'UNAVAILABLE',
    );
    const named = endpoint.replace('127.0.0.1', 'localhost');
    expect(await caller({ token: 'secret-other', endpoint: named })).toBe('other');
    await authority.issue('server', { use: 'server', names: [{ type: 'dns', value: 'elsewhere.example' }] });
    tls.stop();
    await grpc.drain(0);
    await http.stop(0);
    await start();
    expect(await caller({ token: 'secret-other', timeoutMs: 3_000 })).toBe('UNAVAILABLE');
  });

  it.each([
    ['no token and no certificate', { token: undefined }],
    ['half a pair', { token: 'x', tls: { certFile: 'x' } }],
    ['a file that is missing', { token: 'x', tls: { caFile: '/nowhere/ca.pem' } }],
    ['TLS files and plain text', { token: 'x', endpoint: 'http://127.0.0.1:1', tls: { caFile: '/nowhere' } }],
    ['a token in the clear beyond loopback', { token: 'x', endpoint: 'writ.example:7410' }],
    ['the same by scheme', { token: 'x', endpoint: 'http://10.0.0.1:7410' }],
  ])('is refused %s', (_, options) => {
    const given = Object.fromEntries(
      Object.entries({ endpoint: 'https://127.0.0.1:1', ...options }).filter(([, value]) => value !== undefined),
    );
    expect(() => connectWrit(given as unknown as ConnectOptions)).toThrow(WritError);
  });

  it('may send its token in the clear when told so by name', () => {
    connectWrit({ endpoint: 'writ.example:7410', token: 'x', allowInsecure: 'beyond-loopback' }).close();
  });

  it('reads its files anew for the next connection', async () => {
    const port = await freePort();
    await start({}, port);
    await authority.issue('changing', { commonName: 'first' });
    const client = connect({ as: 'changing', token: 'secret-other' });
    const thumbprint = async () => {
      await client.lease.getLease({ leaseId: 'x' }).catch(() => undefined);
      return seen?.certificateThumbprint;
    };
    const first = await thumbprint();
    await authority.issue('changing', { commonName: 'second' });
    expect(await thumbprint()).toBe(first);
    tls.stop();
    await Promise.all([grpc.drain(0), http.stop(0)]);
    await start();
    // The client knows one address: the new server takes the old one's port.
    await grpc.drain(0);
    const next = new GrpcServer({ limits: readConfig({}).limits, metrics, log: createLogger('silent') });
    await next.listen('127.0.0.1', port, tls);
    next.serve({
      api: {
        getLease: async (context: { principal: Principal }) => {
          seen = context.principal;
          throw new Fault('not_found', 'LEASE_NOT_FOUND', '');
        },
      } as unknown as WritApi,
      authenticator: createCallerAuthenticator({
        principals: [{ name: 'other', roles: ['runner'], tokenSha256: hashToken('secret-other') }],
        certificates: CertificateIndex,
      }),
      blockerKey: Buffer.from('key'),
    });
    await expect.poll(thumbprint).not.toBe(first);
    client.close();
    await next.drain(0);
  });
});

describe('the server’s certificate', () => {
  const presented = async (address: string): Promise<string> => {
    const [host, port] = address.replace('https://', '').split(':');
    const socket = tlsConnect({ host, port: Number(port), rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };

  it('is replaced when its files change, without a stream or a connection lost', async () => {
    await start();
    const before = await presented(endpoint);
    const address = new URL(endpoint).host;
    const ca = await readFile(authority.caFile);
    const client = new Client(address, credentials.createSsl(ca));
    const bytes = (b: Buffer) => b;
    const watch = client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      bytes,
      bytes,
      Buffer.alloc(0),
      new Metadata(),
    );
    const states: number[] = [];
    watch.on('data', (b: Buffer) => states.push(b[1] ?? 0)).on('error', () => states.push(-1));
    await once(watch, 'data');
    await authority.issue('server', { use: 'server', names: LOCAL_NAMES });
    await expect.poll(() => presented(endpoint)).not.toBe(before);
    expect(await presented(httpAddress)).toBe(await presented(endpoint));
    grpc.setServing(true);
    await expect.poll(() => states).toEqual([2, 1]);
    expect(await caller({ token: 'secret-other' })).toBe('other');
    client.close();
  });

  it('stays when the new files are broken, and says so', async () => {
    await start();
    const before = await presented(endpoint);
    await writeFile(file('server.pem'), 'no certificate');
    await expect.poll(() => log.join('')).toContain('the new TLS files are not used');
    expect(await presented(endpoint)).toBe(before);
    expect(await presented(httpAddress)).toBe(before);
    await authority.issue('server', { use: 'server', names: LOCAL_NAMES });
    await expect.poll(() => presented(endpoint)).not.toBe(before);
  });

  it('that ends soon is warned of', async () => {
    await start();
    expect(tls.warnings()).toEqual([expect.stringMatching(/server\.pem expires in \d days/)]);
    const { text } = await metrics.render();
    expect(text).toContain('writ_tls_certificate_end_seconds');
    expect(log.join('')).toContain('expires in');
    expect(await get('/readyz')).toBe('200');
  });

  it('is spoken in TLS 1.2 and later, and nothing else', async () => {
    await start();
    for (const address of [endpoint, httpAddress]) {
      const [host, port] = address.replace('https://', '').split(':');
      const old = tlsConnect({
        host,
        port: Number(port),
        rejectUnauthorized: false,
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
      });
      await expect(once(old, 'secureConnect')).rejects.toThrow();
    }
    const plain = connectWrit({ endpoint: new URL(endpoint).host, token: 'secret-other', timeoutMs: 1_000 });
    await expect(plain.lease.getLease({ leaseId: 'x' })).rejects.toThrow();
    plain.close();
  });

  it.each([
    [
      'a certificate that is missing',
      { certFile: '/nowhere/cert.pem' },
      /WRIT_TLS_CERT_FILE: \/nowhere\/cert.pem cannot be read/,
    ],
    ['a key of another certificate', { keyFile: 'subject-key.pem' }, /WRIT_TLS_KEY_FILE: .* do not fit together/],
    ['no certificate', { certFile: 'server-key.pem' }, /WRIT_TLS_CERT_FILE: .* holds no certificate/],
    ['no authority', { clientCaFile: 'server-key.pem' }, /WRIT_TLS_CLIENT_CA_FILE: .* holds no certificate/],
  ])('is refused at the start with %s', async (_, more, message) => {
    const placed = Object.fromEntries(
      Object.entries(more).map(([key, name]) => [key, name.startsWith('/') ? name : file(name)]),
    );
    const config = {
      certFile: file('server.pem'),
      keyFile: file('server-key.pem'),
      clientCaFile: null,
      clientCerts: 'optional' as const,
    };
    const failing = openServerTls({ ...config, ...placed }, createLogger('silent'));
    await expect(failing).rejects.toThrow(TlsFilesError);
    await expect(failing).rejects.toThrow(message);
  });
});

it('health is open to everybody, also in TLS', async () => {
  await start();
  const client = new Client(new URL(endpoint).host, credentials.createSsl(await readFile(authority.caFile)));
  const bytes = (b: Buffer) => b;
  const answer = await new Promise((resolve, reject) =>
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', bytes, bytes, Buffer.alloc(0), (error, value) =>
      error === null ? resolve(value) : reject(error),
    ),
  );
  expect(answer).toEqual(Buffer.from([8, 2]));
  expect(await get('/healthz')).toBe('200');
  client.close();
});
