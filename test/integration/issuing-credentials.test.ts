import { decodeJwt } from 'jose';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Confirmation } from '../../src/domain/credential.js';
import { SECOND } from '../../src/domain/time.js';
import { acquireInput, as, createRun, eventually, leaseOf, type TestReplica, write } from '../support/coordinator.js';
import { CREDENTIALS_MAP, check, env, hold, issue } from '../support/issued-credentials.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

let pair: TwoReplicas;
let a: TestReplica;
let b: TestReplica;
let sql: pg.Client;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: CREDENTIALS_MAP });
  ({ a, b } = pair);
  sql = new pg.Client({ connectionString: pair.database.url });
  await sql.connect();
});

afterAll(async () => {
  await sql?.end();
  await pair?.stop();
});

const held = (resource?: string, action?: string, ttl?: number) => hold(a.api, resource, action, ttl);

describe('issuing', () => {
  test('with the grant: one per audience, and anew when the acquire is repeated by its key', async () => {
    const runId = await createRun(a.api);
    const input = acquireInput(runId, [write(`release/${env()}`, 'promote')], {
      ttl: 60 * SECOND,
      audiences: ['target', 'stranger'],
    });
    const first = (await a.api.acquireWriteSet(as('runner'), input)).value;
    const again = (await b.api.acquireWriteSet(as('runner'), input)).value;
    if (first.kind !== 'lease' || again.kind !== 'lease') throw new Error('no lease');
    expect(first.credentials).toMatchObject([
      { audience: 'target', refusal: null, credential: { audience: 'target' } },
      { audience: 'stranger', credential: null, refusal: { kind: 'audience_not_allowed' } },
    ]);
    expect(again.lease.leaseId).toBe(first.lease.leaseId);
    const [one, two] = [first, again].map(({ credentials }) => decodeJwt(credentials[0]?.credential?.token ?? ''));
    expect(one?.jti).not.toBe(two?.jti);
    expect(one?.authorization_details).toEqual(two?.authorization_details);
  });

  test('with a grant that was waited for', async () => {
    const resource = `release/${env()}`;
    const holder = await held(resource);
    const runId = await createRun(b.api);
    const input = acquireInput(runId, [write(resource, 'promote')], {
      ttl: 60 * SECOND,
      wait: 20 * SECOND,
      audiences: ['target'],
    });
    const waiting = b.api.acquireWriteSet(as('runner'), input);
    const query = {
      runId,
      resource: '',
      lockDelayed: false,
      states: ['waiting'] as const,
      page: { size: 1, token: '' },
    };
    await eventually(
      async () => (await a.api.listLeases(as('operator'), query)).value.items.length,
      (n) => n === 1,
    );
    await a.api.releaseLease(as('runner'), { runId: holder.runId, leaseId: holder.leaseId, acquireKey: null });
    const { value } = await waiting;
    const lease = leaseOf(value);
    const token = value.kind === 'lease' ? (value.credentials[0]?.credential?.token ?? '') : '';
    expect((await check(a.api, token, lease)).allowed).toBe(true);
  });

  test('P10: a lease that is too short gets none, and is told why; it is held all the same', async () => {
    const input = acquireInput(await createRun(a.api), [write(`release/${env()}`, 'promote')], {
      ttl: 6 * SECOND,
      audiences: ['target'],
    });
    const { value } = await a.api.acquireWriteSet(as('runner'), input);
    expect(value).toMatchObject({ kind: 'lease', credentials: [{ credential: null, refusal: { kind: 'too_short' } }] });
    leaseOf(value);
  });

  test('is refused to others than the creator of the run', async () => {
    const lease = await held();
    await expect(issue(a.api, lease, { context: as('runner', { name: 'stranger' }) })).rejects.toMatchObject({
      reason: 'RUN_NOT_FOUND',
    });
  });

  test('bad input is refused by field', async () => {
    const lease = await held();
    const violations = (...fields: string[]) => ({ details: { violations: fields.map((field) => ({ field })) } });
    await expect(issue(a.api, lease, { audience: '' })).rejects.toMatchObject(violations('audience'));
    const short: Confirmation = { kind: 'jkt', thumbprint: 'x' };
    await expect(issue(a.api, lease, { confirmation: short })).rejects.toMatchObject(violations('confirmation.jkt'));
    const both = { leaseId: lease.leaseId, credential: 'x', presenterRunId: '', writes: [], requestId: '' };
    await expect(a.api.checkFence(as('target'), both)).rejects.toMatchObject(violations('lease_id', 'writes'));
    const audiences = Array.from({ length: 17 }, (_, i) => `t${i}`);
    await expect(
      a.api.acquireWriteSet(as('runner'), acquireInput(lease.runId, [write('release/x')], { audiences })),
    ).rejects.toMatchObject(violations('audiences'));
  });

  test('A3: what is secret about it is neither in the log nor in the database', async () => {
    const lease = await held();
    const { token, jti } = await issue(a.api, lease);
    const { rows } = await sql.query<{ kind: string; body: string }>(
      `SELECT kind, body FROM writ.event WHERE lease_id = $1 AND kind = 'credentials_issued'`,
      [lease.leaseId],
    );
    expect(rows).toHaveLength(1);
    expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({ credentials: [{ audience: 'target', jti }] });
    const { rows: found } = await sql.query(`SELECT 1 FROM writ.event WHERE body LIKE $1`, [
      `%${token.split('.')[2]}%`,
    ]);
    expect(found).toEqual([]);
  });
});
