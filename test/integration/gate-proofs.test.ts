import { type ClientRequest, type Server as HttpServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { generateKeyPair, generateProof } from 'dpop';
import express from 'express';
import { Hono } from 'hono';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createCredentialVerifier,
  createGate,
  expressGate,
  type Gate,
  honoGate,
  writesOf,
} from '../../src/clients/target/index.js';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { as, createRun, granted, ISSUER, putMap, write } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

/** Credentials that are bound to a DPoP key (RFC 9449), at real servers: hono and Express must not differ. */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease } } }
`;
const PATH = '/releases/prod-eu/promote';
const ORIGIN = 'https://releases.example';
const ROUTES = {
  version: 1,
  routes: [
    {
      method: 'POST',
      path: '/releases/{env}/promote',
      writes: [{ resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' }],
    },
  ],
};

let replica: ServedReplica;
let gate: Gate;
let lease: Lease;
let holder: Awaited<ReturnType<typeof generateKeyPair>>;
/** Bound to the holder's key, and to none. */
let bound: string;
let unbound: string;
const servers: HttpServer[] = [];

async function issue(confirmation: Confirmation | null): Promise<string> {
  const asked = { runId: lease.runId, leaseId: lease.leaseId, audience: 'target', confirmation, requestId: '' };
  const { value } = await replica.api.issueCredential(as('runner'), asked);
  if (value.credential === null) throw new Error(`no credential: ${value.refusal?.message}`);
  return value.credential.token;
}

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  // For all tests of the file, however long the machine takes for them.
  lease = await granted(replica.api, await createRun(replica.api), [write('release/prod-eu', 'promote')], {
    ttl: 300 * SECOND,
  });
  holder = await generateKeyPair('ES256', { extractable: true });
  const keys = (await replica.keys()) as never;
  gate = createGate({
    client: replica.client('target'),
    routes: ROUTES,
    verifier: createCredentialVerifier({ issuer: ISSUER, audience: 'target', keys, dpop: {} }),
  });
});

// They live a minute.
beforeEach(async () => {
  const thumbprint = await calculateJwkThumbprint(await exportJWK(holder.publicKey));
  bound = await issue({ kind: 'jkt', thumbprint });
  unbound = await issue(null);
});

afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await gate?.close();
  await replica?.stop();
});

async function listening(server: HttpServer): Promise<number> {
  servers.push(server);
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve));
  return (server.address() as AddressInfo).port;
}

const STARTS = {
  async hono(options: { origin?: string }) {
    const app = new Hono();
    app.use(honoGate(gate, options));
    app.post(PATH, (c) => c.json({ by: writesOf(c).runId }));
    return listening(serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }) as HttpServer);
  },
  async Express(options: { origin?: string }) {
    const app = express();
    app.use(expressGate(gate, options));
    app.post(PATH, (req, res) => void res.json({ by: writesOf(req).runId }));
    return listening(app.listen(0, '127.0.0.1'));
  },
};

/** Headers by name, several of one name as a list. */
async function send(port: number, headers: Record<string, string | string[]>): Promise<Record<string, unknown>> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent: ClientRequest = request({ port, host: '127.0.0.1', method: 'POST', path: PATH, headers }, resolve);
    sent.on('error', reject).end();
  });
  return JSON.parse((await answer.toArray()).join('')) as Record<string, unknown>;
}

const proofFor = (origin: string, token = bound) => generateProof(holder, `${origin}${PATH}`, 'POST', undefined, token);

describe.each(['hono', 'Express'] as const)('in %s', (kind) => {
  it('a proof counts for the address that the service is known by', async () => {
    const port = await STARTS[kind]({ origin: ORIGIN });
    const authorization = `DPoP ${bound}`;
    const dpop = await proofFor(ORIGIN);
    expect(await send(port, { authorization, dpop })).toEqual({ by: lease.runId });
    expect(await send(port, { authorization, dpop })).toMatchObject({ status: 401, code: 'proof_replayed' });
    // By Host the caller says whom it has asked, and whoever was shown a proof for another server can say anything.
    const stolen = { authorization, dpop: await proofFor('https://evil.example'), host: 'evil.example' };
    expect(await send(port, stolen)).toMatchObject({ status: 401, code: 'proof_invalid' });
  });

  it('a service that does not say how it is known takes no proof, whatever the Host header says', async () => {
    const port = await STARTS[kind]({});
    for (const host of ['evil.example', `127.0.0.1:${port}`]) {
      const answer = await send(port, { authorization: `DPoP ${bound}`, dpop: await proofFor(`http://${host}`), host });
      expect(answer).toMatchObject({ status: 401, code: 'proof_invalid' });
    }
  });

  it('the address may have a path that a proxy takes off, and a slash at its end; what is no address is refused at once', async () => {
    const port = await STARTS[kind]({ origin: `${ORIGIN}/eu/` });
    const asked = async (origin: string) =>
      send(port, { authorization: `DPoP ${bound}`, dpop: await proofFor(origin) });
    expect(await asked(`${ORIGIN}/eu`)).toEqual({ by: lease.runId });
    expect(await asked(ORIGIN)).toMatchObject({ code: 'proof_invalid' });
    for (const origin of ['releases.example', 'releases.example:8443', 'ftp://releases.example', `${ORIGIN}?a=b`, ''])
      await expect(STARTS[kind]({ origin })).rejects.toThrow(/origin/);
  });

  it('a credential that is bound to a key is none of a bearer, and one that is not bound none of a proof (RFC 9449, 7.2)', async () => {
    const port = await STARTS[kind]({ origin: ORIGIN });
    const asked = async (authorization: string, dpop?: string) =>
      send(port, { authorization, ...(dpop === undefined ? {} : { dpop }) });
    expect(await asked(`Bearer ${bound}`)).toMatchObject({ code: 'proof_missing' });
    expect(await asked(`Bearer ${bound}`, await proofFor(ORIGIN))).toMatchObject({ code: 'proof_missing' });
    expect(await asked(`DPoP ${bound}`)).toMatchObject({ code: 'proof_missing' });
    expect(await asked(`DPoP ${unbound}`)).toMatchObject({ code: 'proof_missing' });
    expect(await asked(`DPoP ${unbound}`, await proofFor(ORIGIN, unbound))).toMatchObject({ code: 'not_bound' });
    expect(await asked(`Bearer ${unbound}`)).toEqual({ by: lease.runId });
    // Schemes are the same in any letter case.
    expect(await asked(`dpOP  ${bound}`, await proofFor(ORIGIN))).toEqual({ by: lease.runId });
    expect(await asked(`bEARER ${unbound}`)).toEqual({ by: lease.runId });
    expect(await asked(`DPoP\t${bound}`, await proofFor(ORIGIN))).toMatchObject({ status: 401 });
  });

  it('two proofs, or two credentials, are none', async () => {
    const port = await STARTS[kind]({ origin: ORIGIN });
    const [one, other] = [await proofFor(ORIGIN), await proofFor(ORIGIN)];
    const authorization = `DPoP ${bound}`;
    expect(await send(port, { authorization, dpop: [one, other] })).toMatchObject({ code: 'proof_invalid' });
    expect(await send(port, { authorization, dpop: [one, ''] })).toMatchObject({ code: 'proof_invalid' });
    for (const several of [
      [`Bearer ${unbound}`, `DPoP ${bound}`],
      [`DPoP ${bound}`, `Bearer ${unbound}`],
      [`Bearer ${unbound}`, 'Bearer x'],
    ])
      expect(await send(port, { authorization: several, dpop: await proofFor(ORIGIN) })).toMatchObject({
        status: expect.toSatisfy((status) => status === 400 || status === 401),
      });
  });
});
