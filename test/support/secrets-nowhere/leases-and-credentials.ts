import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { generateProof } from 'dpop';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  type JSONWebKeySet,
} from 'jose';
import { expect, it } from 'vitest';
import { CredentialRefused, createCredentialVerifier } from '../../../src/clients/target/index.js';
import { Access } from '../../../src/gen/writ/v1/types.js';
import {
  as,
  type Caller,
  call,
  get,
  held,
  hold,
  holdThroughout,
  introspection,
  lastIssued,
  MAP,
  ok,
  secrets,
  WRIT_ISSUER,
  write,
  written,
} from './world.js';

/** Runs and targets at their work, honest and not. */
export function leasesAndCredentials(): void {
  it('of leases and checks, with and without a right to them', async () => {
    await ok('ConflictMapService/PutConflictMap', as('admin'), {
      document: MAP,
      expectedVersion: 0n,
      reason: 'a test',
    });
    const held = await holdThroughout();
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
}

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
  const presented = (token: string, with_: string) => [token, { dpop: { proof: with_, method: 'PUT', url } }] as const;
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
