import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import type { WritError } from '../../src/clients/common/errors.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';

// WRIT_MAX_CALLS_PER_SECOND of a coordinator as users run it: one share for each principal, over both ports.

const LIMIT = 40;

let coordinator: CoordinatorProcess;
const clients: WritClient[] = [];

beforeAll(async () => {
  coordinator = await startCoordinatorProcess({ env: { WRIT_MAX_CALLS_PER_SECOND: String(LIMIT) } });
});

afterAll(async () => {
  for (const client of clients) client.close();
  await coordinator?.stop();
});

type Role = 'target' | 'operator' | 'auditor';

/** Null: it went through. */
function overGrpc(client: WritClient): Promise<WritError | null> {
  return client.credential.introspectCredential({ token: 'x' }).then(
    () => null,
    (error: WritError) => error,
  );
}

function connect(role: Role): WritClient {
  const client = connectWrit({ endpoint: coordinator.grpc, token: coordinator.tokens[role] });
  clients.push(client);
  return client;
}

const overHttp = (role: Role): Promise<Response> =>
  fetch(`http://${coordinator.http}/oauth2/introspect`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${coordinator.tokens[role]}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: 'token=x',
  });

it('whoever has used it up over HTTP is told so over gRPC, with when to call again; others are not', async () => {
  const client = connect('target');
  let refused: WritError | null = null;
  // With a share for each port, fewer calls than its own could not be refused.
  for (let passed = 0; refused === null; passed += 1) {
    expect(passed, 'calls that went through').toBeLessThan(LIMIT - 1);
    const flood = Array.from({ length: 4 * LIMIT }, () => overHttp('target'));
    await Promise.race(flood);
    refused = await overGrpc(client);
    const limited = (await Promise.all(flood)).find(({ status }) => status === 429);
    if (limited === undefined) continue;
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await limited.json()).toMatchObject({
      reason: 'RATE_LIMITED',
      detail: expect.stringContaining('WRIT_MAX_CALLS_PER_SECOND'),
    });
  }
  expect(refused).toMatchObject({ code: 'RESOURCE_EXHAUSTED', reason: 'RATE_LIMITED', retryable: true });
  expect(refused.retryAfterMs).toBeGreaterThan(0);
  expect(await overGrpc(connect('operator'))).toBeNull();
  expect((await overHttp('auditor')).status).toBe(200);
});
