import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { ROUTES } from '../../../src/auth/roles.js';
import { makeToken } from '../../../src/auth/tokens.js';
import { Access } from '../../../src/gen/writ/v1/types.js';
import {
  as,
  type Caller,
  call,
  get,
  hold,
  http,
  lastIssued,
  MAP,
  now,
  personsToken,
  ROLES,
  rpcs,
  scrape,
  seconds,
  secrets,
  tokens,
} from './world.js';

/** Everybody, by every RPC and route, and by the console's sign-in. */
export function callers(): void {
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
}
