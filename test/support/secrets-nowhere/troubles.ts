import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { hashToken, makeToken } from '../../../src/auth/tokens.js';
import { eventually } from '../coordinator.js';
import { authorized, callRpc, type Rpc } from '../every-rpc.js';
import {
  as,
  call,
  clients,
  coordinator,
  database,
  file,
  get,
  held,
  introspection,
  lastIssued,
  noted,
  principals,
  rpcs,
  scrape,
  secrets,
  tokens,
  writePrincipals,
  written,
} from './world.js';

/** Broken files, a database that dies, floods. */
export function troubles(): void {
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
    noted.beforeFloods = coordinator.said();
    expect(new Set(await flood(strangers.map((token) => `Bearer ${token}`)))).toEqual(new Set(['UNAUTHENTICATED']));
    const busy = Array.from({ length: 700 }, () => `Bearer ${tokens.stranger}`);
    await eventually(
      () => flood(busy),
      (seen) => seen.includes('RESOURCE_EXHAUSTED'),
    );
    await scrape();
  });
}
