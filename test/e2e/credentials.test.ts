import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Access } from '../../src/gen/writ/v1/types.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

/** Credentials of a coordinator as users run it: over gRPC and HTTP, verified by other people's libraries. */

/** Debian's interpreter, for which Debian's packages are: another python3 may come first on the path. */
const PYTHON = '/usr/bin/python3';
const SCRIPT = fileURLToPath(new URL('python_verify.py', import.meta.url));

const missing = whatIsMissing();
if (missing !== '') console.warn(`skipped: PyJWT: ${missing}`);

function whatIsMissing(): string {
  try {
    execFileSync(PYTHON, ['-c', 'import jwt, cryptography'], { stdio: 'pipe' });
    return '';
  } catch (error) {
    const said = (error as { stderr?: Buffer }).stderr?.toString().trim().split('\n').at(-1);
    return `${said || (error as Error).message}; on Debian: apt-get install python3-jwt python3-cryptography`;
  }
}

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;

let coordinator: CoordinatorProcess;
let runId: string;
let leaseId: string;

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  const admin = coordinator.client('admin');
  await admin.conflictMap.putConflictMap({ document: MAP, expectedVersion: 0n, reason: 'a test' });
  const runner = coordinator.client('runner');
  const { run } = await runner.run.createRun({
    purpose: 'a test',
    allowed: [{ pattern: 'release/{env}', actions: ['*'] }],
    authorityEndsAt: { seconds: BigInt(Math.floor(Date.now() / 1_000) + 3_600), nanos: 0 },
  });
  runId = run?.runId ?? '';
  const answer = await runner.lease.acquireWriteSet({
    runId,
    entries: [{ resource: 'release/prod-eu', access: Access.ACCESS_WRITE, actions: ['promote'] }],
    ttl: { seconds: 300n, nanos: 0 },
    audiences: ['target'],
  });
  if (answer.outcome?.$case !== 'lease') throw new Error(`no lease: ${JSON.stringify(answer.outcome)}`);
  leaseId = answer.outcome.value.leaseId;
  const [issued] = answer.credentials;
  if (issued?.outcome?.$case !== 'credential') throw new Error('no credential came with the lease');
});

afterAll(async () => {
  await coordinator?.stop();
  if (coordinator !== undefined) await rm(coordinator.dataDir, { recursive: true, force: true });
});

/** One of the test's own: it lives a minute, however slow the machine is. */
async function issue(): Promise<string> {
  const { outcome } = await coordinator
    .client('runner')
    .credential.issueCredential({ runId, leaseId, audience: 'target' });
  if (outcome?.$case !== 'credential') throw new Error(`refused: ${outcome?.value.message}`);
  return outcome.value.token;
}

const keysUrl = () => new URL(`http://${coordinator.http}/.well-known/jwks.json`);
const check = (credential: string) =>
  coordinator.client('target').fence.checkFence({
    credential,
    writes: [{ resource: 'release/prod-eu', action: 'promote' }],
  });

it('are verified by a stock verifier that follows the published keys', async () => {
  const { payload } = await jwtVerify(await issue(), createRemoteJWKSet(keysUrl()), {
    algorithms: ['ES256'],
    issuer: `http://${coordinator.http}`,
    audience: 'target',
    typ: 'at+jwt',
    maxTokenAge: 60,
    clockTolerance: 5,
  });
  expect(payload.lease_id).toBe(leaseId);
  const { jwks, issuer } = await coordinator.client('auditor').credential.getKeys({});
  expect(jwks).toBe(await (await fetch(keysUrl())).text());
  expect(issuer).toBe(payload.iss);
});

describe(missing === '' ? 'Python' : `Python (skipped: ${missing})`, () => {
  it.skipIf(missing !== '')('verifies one with PyJWT, and refuses it for another audience', async () => {
    const token = await issue();
    const verify = (audience: string) =>
      promisify(execFile)(PYTHON, [SCRIPT, keysUrl().href, token, `http://${coordinator.http}`, audience], {
        timeout: 30_000,
      });
    const claims = JSON.parse((await verify('target')).stdout) as Record<string, unknown>;
    expect(claims).toMatchObject({
      sub: runId,
      aud: 'target',
      authorization_details: [{ resources: ['release/prod-eu'] }],
    });
    await expect(verify('another')).rejects.toMatchObject({ stdout: 'InvalidAudienceError\n' });
  });
});

it('are taken by a check in place of the lease id, and by introspection', async () => {
  const token = await issue();
  expect(await check(token)).toMatchObject({ allowed: true });
  const introspect = (role: 'target' | 'runner' | 'approver', form: string) =>
    fetch(`http://${coordinator.http}/oauth2/introspect`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${coordinator.tokens[role]}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: form,
    });
  const answer = await introspect('target', `token=${token}&token_type_hint=access_token`);
  expect(await answer.json()).toMatchObject({ active: true, token_type: 'Bearer', sub: runId, client_id: 'runner' });
  expect(await (await introspect('target', 'token=nonsense')).json()).toEqual({ active: false });
  expect((await introspect('target', 'no=token')).status).toBe(400);
  expect((await introspect('approver', `token=${token}`)).status).toBe(403);
});

it('are counted: issued, looked at, and verified once', async () => {
  const token = await issue();
  for (let times = 0; times < 3; times += 1) expect((await check(token)).allowed).toBe(true);
  const answer = await fetch(`http://${coordinator.http}/metrics`, {
    headers: { authorization: `Bearer ${coordinator.tokens.auditor}` },
  });
  const metrics = await answer.text();
  const counted = (series: string) =>
    Number(
      metrics
        .split('\n')
        .find((line) => line.startsWith(series))
        ?.split(' ')[1],
    );
  expect(counted('writ_credentials_issued_total{namespace="default"}')).toBeGreaterThanOrEqual(2);
  expect(counted('writ_credential_lookups_total{found="miss"}')).toBeGreaterThanOrEqual(1);
  expect(counted('writ_credential_lookups_total{found="hit"}')).toBeGreaterThanOrEqual(2);
});

it('count for nothing once revoked, and a new one counts; neither is in the log of the process', async () => {
  const token = await issue();
  const operator = coordinator.client('operator');
  await operator.credential.revokeCredential({ subject: { $case: 'leaseId', value: leaseId }, reason: 'leaked' });
  expect((await check(token)).results[0]?.message).toContain('revoked');
  const runner = coordinator.client('runner');
  const again = async () => (await runner.credential.issueCredential({ runId, leaseId, audience: 'target' })).outcome;
  // Within the second of the revocation it is refused, with the time after which it is not.
  let outcome = await again();
  while (outcome?.$case === 'refusal') outcome = await again();
  expect(await check(outcome?.value.token ?? '')).toMatchObject({ allowed: true });
  for (const secret of [token, outcome?.value.token ?? '?'])
    expect(coordinator.log()).not.toContain(secret.split('.')[2]);
});

it('are signed by keys that are sealed by a key of the data directory, and survive a restart', async () => {
  const path = join(coordinator.dataDir, 'key-encryption-key');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const before = createHash('sha256').update(readFileSync(path)).digest('hex');
  const keys = await coordinator.client('operator').credential.listSigningKeys({});
  await coordinator.stop();
  coordinator = await startCoordinatorProcess({ dataDir: coordinator.dataDir });
  expect(createHash('sha256').update(readFileSync(path)).digest('hex')).toBe(before);
  expect(await coordinator.client('operator').credential.listSigningKeys({})).toEqual(keys);
});
