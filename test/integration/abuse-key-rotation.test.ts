import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeProtectedHeader, type JSONWebKeySet } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CredentialRefused } from '../../src/clients/target/index.js';
import { verifierWith } from '../../src/clients/target/verify-credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { KEYS_MAX_AGE, PUBLISHED_BEFORE } from '../../src/domain/signing-keys.js';
import { SECOND } from '../../src/domain/time.js';
import {
  as,
  createRun,
  eventually,
  granted,
  ISSUER,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/**
 * F20 in full: keys rotate while credentials are issued, checked and verified, and one of two replicas is restarted all
 * the time. The verifiers are those that targets use; they fetch from whichever replica serves, by a cache that is 1,000
 * times shorter than in production, and a rotation waits until each of them has fetched the next key by itself, as 630 s
 * make sure of there. The database's record is then aged so that the rotation is due; nothing else is made up.
 */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;
const RESTARTS = 50;
const RESTARTS_PER_ROTATION = 5;
const VERIFIERS = 3;
/** Unknown keys are not looked for meanwhile: a key that signed too early is a failed verification. */
const TIMES = { maxAgeMs: KEYS_MAX_AGE / 1_000 / 1_000, cooldownMs: 600_000, pauseAfterFailureMs: 1_000 };

let database: TestDatabase;
let steady: TestReplica;
let restarted: TestReplica;
let sql: pg.Client;
let server: Server;
/** By verifier: when it fetched, and the keys that it was given last. */
const fetches = new Map<string, { readonly at: number[]; kids: readonly string[] }>();
let largestSet = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  steady = await startReplica({ url: database.url });
  restarted = await startReplica({ url: database.url });
  await putMap(steady.api, MAP);
  sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
  server = createServer(async (request, response) => {
    const { jwks } = await steady.api.getKeys();
    const { keys } = JSON.parse(jwks) as JSONWebKeySet;
    const seen = fetches.get(request.url ?? '') ?? { at: [], kids: [] };
    seen.at.push(performance.now());
    seen.kids = keys.map(({ kid = '' }) => kid);
    fetches.set(request.url ?? '', seen);
    largestSet = Math.max(largestSet, keys.length);
    response.setHeader('content-type', 'application/json').end(jwks);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterAll(async () => {
  server?.close();
  await sql?.end();
  await steady?.stop();
  await restarted?.stop();
  await database?.drop();
});

async function issue(on: TestReplica, lease: Lease): Promise<string> {
  const { value } = await on.api.issueCredential(as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: 'target',
    confirmation: null,
    requestId: '',
  });
  return value.credential?.token ?? '';
}

async function allowedBy(on: TestReplica, credential: string, resource: string): Promise<boolean> {
  const writes = [{ resource, action: 'promote', token: 0, observedVersion: null }];
  const { value } = await on.api.checkFence(as('target'), {
    leaseId: '',
    credential,
    presenter: null,
    presenterRunId: '',
    writes,
    requestId: '',
  });
  return value.allowed;
}

const keyIn = async (state: string): Promise<string> =>
  (await sql.query<{ key_id: string }>('SELECT key_id FROM writ.signing_key WHERE state = $1', [state])).rows[0]
    ?.key_id ?? '';

it('F20: through 10 rotations and 50 restarts nothing genuine is refused, and keys are fetched once in a window', async () => {
  // Of its own, should this be the second attempt: the first one's verifiers have fetched too, and its lease lives on.
  fetches.clear();
  const resource = `release/${randomUUID()}`;
  const lease = await granted(steady.api, await createRun(steady.api), [write(resource, 'promote')], {
    ttl: 300 * SECOND,
  });
  const failures: string[] = [];
  const kids = new Set<string>();
  let verified = 0;
  let done = false;
  const load = Array.from({ length: VERIFIERS }, async (_, number) => {
    const { port } = server.address() as AddressInfo;
    const keys = new URL(`http://127.0.0.1:${port}/${number}`);
    const verifier = verifierWith({ issuer: ISSUER, audience: 'target', keys }, TIMES);
    while (!done) {
      // The other one is between two lives now and then.
      const credential = await issue(steady, lease);
      const { kid = '' } = decodeProtectedHeader(credential);
      kids.add(kid);
      await verifier.verifyCredential(credential).catch((error: CredentialRefused) => {
        failures.push(`${number}: ${error.reason} of ${kid}, knowing ${fetches.get(`/${number}`)?.kids}`);
      });
      if (!(await allowedBy(steady, credential, resource))) failures.push(`a check: ${kid}`);
      verified += 1;
    }
  });
  const verifiedByAll = async () => {
    const from = verified;
    await eventually(
      () => verified,
      (count) => count >= from + 2 * VERIFIERS,
    );
  };
  try {
    for (let restart = 1; restart <= RESTARTS; restart += 1) {
      await restarted.stop();
      restarted = await startReplica({ url: database.url });
      const fromIt = await issue(restarted, lease);
      if (!(await allowedBy(steady, fromIt, resource))) failures.push('of the restarted one');
      if (restart % RESTARTS_PER_ROTATION !== 0) continue;
      await rotate(verifiedByAll);
    }
  } finally {
    done = true;
    await Promise.all(load);
  }
  expect(failures).toEqual([]);
  expect(kids.size).toBeGreaterThanOrEqual(RESTARTS / RESTARTS_PER_ROTATION);
  expect(largestSet).toBeLessThanOrEqual(5);
  const { rows } = await sql.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM writ.signing_key WHERE state <> 'retired'`,
  );
  expect(rows[0]?.count).toBeLessThanOrEqual(5);
  expect(fetches.size).toBe(VERIFIERS);
  for (const { at } of fetches.values()) {
    const gaps = at.slice(1).map((time, index) => time - (at[index] ?? 0));
    expect(gaps.length).toBeGreaterThan(5);
    // To the millisecond that the cache counts in.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(TIMES.maxAgeMs - 2);
  }
}, 300_000);

/** As the schedule does, once it is time. */
async function rotate(verifiedByAll: () => Promise<void>): Promise<void> {
  const next = await keyIn('next');
  await eventually(
    () => [...fetches.values()],
    (all) => all.length === VERIFIERS && all.every(({ kids }) => kids.includes(next)),
  );
  await sql.query(
    `UPDATE writ.signing_key SET created_at_us = created_at_us - $1, activated_at_us = activated_at_us - $1
     WHERE state IN ('next', 'current')`,
    [PUBLISHED_BEFORE + SECOND],
  );
  await restarted.api.rotateSigningKey(as('operator'), { reason: 'a test', force: false });
  expect(await keyIn('current')).toBe(next);
  // The steady replica signs by what it read lately. When it has read that, and what it signed before is used up, the key
  // of before may go.
  await eventually(
    async () => (await steady.api.listSigningKeys()).find(({ state }) => state === 'current')?.keyId,
    (current) => current === next,
  );
  await verifiedByAll();
  await sql.query(`UPDATE writ.signing_key SET replaced_at_us = activated_at_us WHERE state = 'previous'`);
}
