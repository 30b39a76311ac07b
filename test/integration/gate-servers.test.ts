import { createHash, X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import type { Server as HttpServer, IncomingMessage } from 'node:http';
import { createServer as createSecureServer, request as secureRequest } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '@hono/node-server';
import express from 'express';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGate, decisionOf, expressGate, type Gate, honoGate, writesOf } from '../../src/clients/target/index.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { LOCAL_NAMES, testAuthority } from '../support/certificates.js';
import { as, createRun, granted, putMap, write } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

/** The gate as middleware, in real servers over real sockets; hono and Express must not differ. */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease } } }
`;

const ROUTES = {
  version: 1,
  routes: [
    {
      method: 'POST',
      path: '/releases/{env}/promote',
      writes: [{ resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' }],
    },
    { method: 'GET', path: '/releases/{env}', reads: true },
    { method: 'POST', path: '/forgotten', reads: true },
  ],
};

let replica: ServedReplica;
let gate: Gate;
let runId: string;
let lease: Lease;
let directory: string;
const servers: HttpServer[] = [];
/** What handlers were reached with. */
const reached: string[] = [];

const caller = (header: string | undefined) => (header === undefined ? {} : { runId: header });

function honoApp(): Hono {
  const app = new Hono();
  app.use(honoGate(gate, { caller: (c) => caller(c.req.header('x-authenticated-run')) }));
  app.post('/releases/:env/promote', (c) => {
    reached.push(c.req.path);
    const { runId: by, toGuard, requestId } = writesOf(c);
    return c.json({ by, requestId, tokens: toGuard.map(({ token }) => String(token)) });
  });
  app.get('/releases/:env', (c) => c.json({ kind: decisionOf(c).kind }));
  app.post('/forgotten', (c) => c.json(writesOf(c).runId));
  app.onError((error, c) => c.text(error.message, 500));
  app.all('*', (c) => {
    reached.push(c.req.path);
    return c.text('reached');
  });
  return app;
}

function expressApp(): express.Express {
  const app = express();
  app.use(expressGate(gate, { caller: (req) => caller(req.headers['x-authenticated-run'] as string | undefined) }));
  const router = express.Router();
  router.post('/:env/promote', (req, res) => {
    reached.push(req.originalUrl);
    const { runId: by, toGuard, requestId } = writesOf(req);
    res.json({ by, requestId, tokens: toGuard.map(({ token }) => String(token)) });
  });
  router.get('/:env', (req, res) => void res.json({ kind: decisionOf(req).kind }));
  app.use('/releases', router);
  app.post('/forgotten', (req, res) => void res.json(writesOf(req).runId));
  app.use((req, res) => {
    reached.push(req.originalUrl);
    res.send('reached');
  });
  app.use(
    (error: Error, _req: unknown, res: express.Response, _next: unknown) => void res.status(500).send(error.message),
  );
  return app;
}

type Kind = 'hono' | 'Express';
const ports = new Map<Kind, number>();

async function listening(server: HttpServer): Promise<number> {
  servers.push(server);
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  runId = await createRun(replica.api);
  // For all tests of the file, however long the machine takes for them.
  lease = await granted(replica.api, runId, [write('release/prod-eu', 'promote')], { ttl: 300 * SECOND });
  gate = createGate({ client: replica.client('target'), routes: ROUTES });
  directory = await mkdtemp(join(tmpdir(), 'writ-gate-'));
  ports.set('hono', await listening(serve({ fetch: honoApp().fetch, hostname: '127.0.0.1', port: 0 }) as HttpServer));
  ports.set('Express', await listening(expressApp().listen(0, '127.0.0.1')));
});

afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await gate?.close();
  await replica?.stop();
  await rm(directory, { recursive: true, force: true });
});

const presenting = () => ({ 'writ-lease': lease.leaseId, 'writ-fencing-token': String(lease.entries[0]?.token) });

function send(kind: Kind, path: string, headers: Record<string, string> = {}, method = 'POST'): Promise<Response> {
  return fetch(`http://127.0.0.1:${ports.get(kind)}${path}`, { method, headers });
}

/** Sends a target that no client library would send; the status, and what came. */
function sendRaw(
  kind: Kind,
  target: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(ports.get(kind) ?? 0, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('error', reject);
    socket.on('close', () => resolve({ status: Number(text.split(' ')[1]), text }));
    const lines = Object.entries({ host: 'localhost', connection: 'close', 'content-length': '0', ...headers });
    socket.write(`POST ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
  });
}

describe.each<Kind>(['hono', 'Express'])('the gate in %s', (kind) => {
  it('lets a covered write through, with what the handler needs', async () => {
    const answer = await send(kind, '/releases/prod-eu/promote?a=b', { ...presenting(), 'x-request-id': 'r-1' });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ by: runId, requestId: 'r-1', tokens: [String(lease.entries[0]?.token)] });
  });

  it('answers a refusal as a problem, and reaches no handler', async () => {
    reached.length = 0;
    const answer = await send(kind, '/releases/other/promote', { ...presenting(), 'x-request-id': 'r-2' });
    expect(answer.status).toBe(403);
    expect(answer.headers.get('content-type')).toBe('application/problem+json');
    expect(answer.headers.get('x-request-id')).toBe('r-2');
    expect(await answer.json()).toMatchObject({
      type: 'urn:writ:problem:not_covered',
      status: 403,
      code: 'not_covered',
      resource: 'release/other',
      request_id: 'r-2',
    });
    const bare = await send(kind, '/releases/prod-eu/promote');
    expect([bare.status, bare.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect((await send(kind, '/nowhere')).status).toBe(403);
    expect((await send(kind, '/releases/prod-eu/promote', presenting(), 'DELETE')).status).toBe(403);
    expect(reached).toEqual([]);
  });

  it('believes the caller that the service found out, and no header of the run', async () => {
    const other = await createRun(replica.api);
    const answer = await send(kind, '/releases/prod-eu/promote', { ...presenting(), 'x-authenticated-run': other });
    expect(await answer.json()).toMatchObject({ status: 403, code: 'wrong_holder' });
  });

  it('lets reads through', async () => {
    expect(await (await send(kind, '/releases/prod-eu', {}, 'GET')).json()).toEqual({ kind: 'reads' });
  });

  it('lets no handler write that the route table has forgotten', async () => {
    const answer = await send(kind, '/forgotten', presenting());
    expect([answer.status, await answer.text()]).toEqual([500, 'the route table declares no write for this request']);
  });

  it.each([
    '/releases/./prod-eu/promote',
    '/releases/x/../prod-eu/promote',
    '/releases/%2e%2e/releases/prod-eu/promote',
    '/releases//prod-eu/promote',
    '//releases/prod-eu/promote',
    '/releases/prod-eu/promote/',
    '/releases/prod-eu%2Fpromote',
    '/releases/prod-eu%2fpromote/promote',
    '/releases/prod-eu%5cx/promote',
    '/releases/prod-eu%00/promote',
    '/releases/prod-eu%c0%af/promote',
    '/releases/prod-eu;x/promote',
    '/releases\\prod-eu/promote',
    '/RELEASES/prod-eu/promote',
    'http://localhost/releases/prod-eu/promote',
    '*',
  ])('%s, as it was sent, reaches no handler', async (target) => {
    reached.length = 0;
    const { status, text } = await sendRaw(kind, target, presenting());
    expect(status, text).toBeGreaterThanOrEqual(400);
    expect(status, text).toBeLessThan(500);
    expect(reached).toEqual([]);
  });

  it('takes two leases, or two authorizations, for none', async () => {
    reached.length = 0;
    const { status } = await sendRaw(kind, '/releases/prod-eu/promote', {
      ...presenting(),
      'Writ-Lease': lease.leaseId,
      'Writ-Fencing-Token': '1',
    });
    expect(status).toBe(400);
    expect(reached).toEqual([]);
  });
});

describe('over TLS', () => {
  it('a credential that is bound to a certificate counts for its owner alone, in hono as in Express', async () => {
    const authority = await testAuthority(directory);
    const server = await authority.issue('server', { use: 'server', names: LOCAL_NAMES });
    const [owner, thief] = [await authority.issue('owner'), await authority.issue('thief')];
    const thumbprint = createHash('sha256')
      .update(new X509Certificate(await readFile(owner.certFile)).raw)
      .digest('base64url');
    const { value } = await replica.api.issueCredential(as('runner'), {
      runId,
      leaseId: lease.leaseId,
      audience: 'target',
      confirmation: { kind: 'x5t#S256', thumbprint },
      requestId: '',
    });
    const options = {
      key: await readFile(server.keyFile),
      cert: await readFile(server.certFile),
      ca: await readFile(authority.caFile),
      requestCert: true,
      // Whether a certificate is believed is not the question here: the credential is bound to its key.
      rejectUnauthorized: false,
    };
    const apps = [
      createSecureServer(options, expressApp()).listen(0, '127.0.0.1'),
      serve({
        fetch: honoApp().fetch,
        hostname: '127.0.0.1',
        port: 0,
        createServer: createSecureServer,
        serverOptions: options,
      }),
    ] as unknown as HttpServer[];
    const pairOf = async ({ certFile, keyFile }: { certFile: string; keyFile: string }) => ({
      cert: await readFile(certFile),
      key: await readFile(keyFile),
    });
    for (const app of apps) {
      const port = await listening(app);
      const as = async (pair: { cert?: Buffer; key?: Buffer }) => {
        const answer = await new Promise<IncomingMessage>((resolve, reject) => {
          const headers = { authorization: `Bearer ${value.credential?.token}` };
          const path = '/releases/prod-eu/promote';
          secureRequest(
            { port, host: '127.0.0.1', method: 'POST', path, headers, ca: options.ca, agent: false, ...pair },
            resolve,
          )
            .on('error', reject)
            .end();
        });
        return JSON.parse((await answer.toArray()).join('')) as Record<string, unknown>;
      };
      expect(await as(await pairOf(owner))).toMatchObject({ by: runId });
      expect(await as(await pairOf(thief))).toMatchObject({ status: 401, code: 'binding_mismatch' });
      expect(await as({})).toMatchObject({ status: 401, code: 'not_bound' });
    }
  });
});
