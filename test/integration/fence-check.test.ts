import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { toldCertificate } from '../support/certificates.js';
import { as, createRun, eventually, granted, write } from '../support/coordinator.js';
import type { TestGateway } from '../support/gateway.js';
import { about, type Headers, type Pages, page, presenting, startPages, tokenOf } from '../support/gateway-pages.js';

// What a run presents decides (GET /v1/fence/check).

let pages: Pages;
let gateway: TestGateway;
let check: Pages['check'];
let held: Pages['held'];
let report: Pages['report'];

beforeAll(async () => {
  pages = await startPages();
  ({ gateway, check, held, report } = pages);
});

afterAll(async () => {
  await pages?.stop();
});

const EVERYTHING = { runId: '', leaseId: '', resource: '', kinds: [], afterRevision: 0, newestFirst: false };

describe('a request with a lease', () => {
  test('passes, and the service is told whose it is; no token comes back', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const answer = await check([
      ...about('PUT', `/pages/${name}?draft=1`),
      ...presenting(lease),
      ['X-Request-Id', 'mine'],
    ]);
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(answer.headers).toMatchObject({
      'writ-reason': 'ok',
      'writ-run-id': lease.runId,
      'writ-log-revision': expect.stringMatching(/^\d+$/),
      'writ-valid-for': expect.stringMatching(/^\d+ms$/),
      'x-request-id': 'mine',
      'cache-control': 'no-store',
    });
    expect(JSON.stringify(answer.headers)).not.toContain(tokenOf(lease));
  });

  test('by the headers of Traefik and Caddy too', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const forwarded: [string, string][] = [
      ['X-Forwarded-Method', 'PUT'],
      ['X-Forwarded-Host', 'pages.example:8443'],
      ['X-Forwarded-Uri', `/pages/${name}`],
    ];
    expect((await check([...forwarded, ...presenting(lease)])).status).toBe(200);
  });

  test('makes all of its writes, or none', async () => {
    const name = page();
    const both = await held(`page/${name}`, `menu/${name}`);
    const tokens = `${tokenOf(both, 0)}, ${tokenOf(both, 1)}`;
    const asked = about('PUT', `/sites/${name}`);
    expect((await check([...asked, ...presenting(both, tokens)])).status).toBe(200);
    // Of one grant they are the same.
    expect((await check([...asked, ...presenting(both)])).status).toBe(200);
    const three = await check([...asked, ...presenting(both, `${tokens},7`)]);
    expect(three).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
    expect((await check([...asked, ...presenting(both, `${tokenOf(both)},7`)])).status).toBe(409);
    const other = page();
    const half = await held(`page/${other}`);
    const refused = await check([
      ...about('PUT', `/sites/${other}`),
      ...presenting(half, `${tokenOf(half)},${tokenOf(half)}`),
    ]);
    expect(refused).toMatchObject({ status: 403, body: { code: 'not_covered', resource: `menu/${other}` } });
  });

  test("R4: a check that the proxy repeats, as its answer was lost, is known by the proxy's own id of the request", async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`pointer/${name}`, 'set')], { ttl: 120 * SECOND });
    const asked = [...about('PUT', `/pointers/${name}`), ...presenting(lease)];
    const admitted = async (attempt: string) =>
      String((await check([...asked, ['Writ-Attempt-Id', attempt]])).headers['writ-admission-id']);
    const first = await admitted(`${name}-a`);
    expect(await admitted(`${name}-a`)).toBe(first);
    expect(await admitted(`${name}-b`)).not.toBe(first);
    // Once it was reported, the same id is another attempt.
    await report(first, 'succeeded');
    expect(await admitted(`${name}-a`)).not.toBe(first);
    for (const wrong of [
      [
        ['Writ-Attempt-Id', 'a'],
        ['Writ-Attempt-Id', 'b'],
      ],
      [['Writ-Attempt-Id', 'x'.repeat(129)]],
    ] as const)
      expect(await check([...asked, ...wrong])).toMatchObject({
        status: 400,
        body: { violations: [{ field: 'writ-attempt-id' }] },
      });
  });

  test('R4: leaves an admission where the action is tracked, one for each request, whatever id it carries', async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`pointer/${name}`, 'set')], { ttl: 120 * SECOND });
    const asked = [...about('PUT', `/pointers/${name}`), ...presenting(lease)];
    const admitted = async (requestId: string) =>
      String((await check([...asked, ['X-Request-Id', requestId]])).headers['writ-admission-id']);
    const first = await admitted(`${name}-1`);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    // Sent again while the first is slow: two may be in flight, so there are two to report.
    const resent = await admitted(`${name}-1`);
    expect(resent).toMatch(/^[0-9a-f]{32}$/);
    expect(resent).not.toBe(first);
    const stop = async () =>
      (await gateway.replica.api.stopRun(as('operator'), { runId, reason: 'enough' })).value.run.run.state;
    await report(resent, 'failed');
    expect(await stop()).toBe('stopping');
    await report(first, 'succeeded');
    expect(await stop()).toBe('stopped');
    // Found by the request's own id too.
    const query = { ...EVERYTHING, requestId: `${name}-1`, page: { size: 10, token: '' } };
    const { items } = await gateway.replica.api.listEvents(as('auditor'), query);
    expect(items.map(({ kind }) => kind)).toEqual(['writes_admitted', 'writes_admitted']);
  });

  test('P3: is refused once the lease is over, with one status per class and what to do', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const asked = about('PUT', `/pages/${name}`);
    expect(await check([...asked, ...presenting(lease, '7')])).toMatchObject({
      status: 409,
      body: { code: 'stale_token' },
    });
    expect(await check([...about('PUT', `/pages/${page()}`), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'not_covered' },
    });
    expect(await check([...about('PATCH', `/pages/${name}`), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'action_not_allowed' },
    });
    const release = { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null };
    await gateway.replica.api.releaseLease(as('runner'), release);
    const late = await check([...asked, ...presenting(lease), ['X-Request-Id', 'late']]);
    expect(late.headers['content-type']).toBe('application/problem+json');
    expect(late).toMatchObject({
      status: 409,
      headers: { 'writ-reason': 'released', 'x-request-id': 'late', 'writ-log-revision': expect.any(String) },
      body: {
        type: 'urn:writ:problem:released',
        title: 'Not allowed now',
        status: 409,
        code: 'released',
        resource: `page/${name}`,
        action: 'replace',
        conflict_category: 'shared_document',
        resolver: 'editor',
        retryable: false,
        next: expect.stringMatching(/^Stop/),
        request_id: 'late',
      },
    });
  });

  test('is refused when nobody can tell: a stopped run, a lease of nobody', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    await gateway.replica.api.stopRun(as('operator'), { runId: lease.runId, reason: 'enough' });
    const asked = about('PUT', `/pages/${name}`);
    expect(await check([...asked, ...presenting(lease)])).toMatchObject({ status: 409, body: { code: 'run_stopped' } });
    const unknown: Headers = [...asked, ['Writ-Lease', 'f'.repeat(32)], ['Writ-Fencing-Token', '7']];
    expect(await check(unknown)).toMatchObject({ status: 403, body: { code: 'unknown_lease' } });
    const future: Headers = [...asked, ['Writ-Lease', lease.leaseId], ['Writ-Fencing-Token', '18446744073709551615']];
    expect(await check(future)).toMatchObject({ status: 403, body: { code: 'future_token' } });
  });

  test('C8: an optimistic write must say what it was made from', async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`page/${name}`, 'patch')], { ttl: 120 * SECOND });
    const asked = [...about('PATCH', `/pages/${name}`), ...presenting(lease)];
    expect(await check(asked)).toMatchObject({ status: 428, body: { code: 'version_required' } });
    // Strong comparison (RFC 9110): a weak tag, or none in particular, is no version.
    for (const none of ['*', 'W/"41"', '41', '"1", "2"'])
      expect((await check([...asked, ['If-Match', none]])).status, none).toBe(428);
    expect((await check([...asked, ['If-Match', '"41"']])).status).toBe(200);
    expect((await check([...asked, ['If-None-Match', '*']])).status).toBe(200);
  });
});

describe('a request with a credential', () => {
  async function issued(
    audience: string,
    confirmation: Confirmation | null = null,
  ): Promise<{ name: string; token: string; lease: Lease }> {
    const name = page();
    const lease = await held(`page/${name}`);
    const input = { runId: lease.runId, leaseId: lease.leaseId, audience, confirmation, requestId: '' };
    const { value } = await gateway.replica.api.issueCredential(as('runner'), input);
    if (value.credential === null) throw new Error('no credential');
    return { name, lease, token: value.credential.token };
  }

  test('passes by that alone, and only at the service it is for', async () => {
    const { name, token, lease } = await issued('svc:pages');
    const asked = about('PUT', `/pages/${name}`);
    const passed = await check([...asked, ['Writ-Authorization', `Bearer ${token}`]]);
    expect(passed).toMatchObject({ status: 200, headers: { 'writ-run-id': lease.runId } });
    const elsewhere = await issued('svc:other');
    const refused = await check([
      ...about('PUT', `/pages/${elsewhere.name}`),
      ['Writ-Authorization', `Bearer ${elsewhere.token}`],
    ]);
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      body: { code: 'wrong_audience' },
    });
  });

  test('F18: one that was changed is refused as that', async () => {
    const { name, token } = await issued('svc:pages');
    const [header, payload] = token.split('.');
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    for (const [changed, code] of [
      [`${header}.${payload}.${'A'.repeat(86)}`, 'bad_signature'],
      [`${none}.${payload}.`, 'alg_not_allowed'],
      ['rubbish', 'malformed'],
    ] as const) {
      const answer = await check([...about('PUT', `/pages/${name}`), ['Writ-Authorization', `Bearer ${changed}`]]);
      expect(answer).toMatchObject({ status: 401, body: { code } });
    }
  });

  test('that is bound to a certificate counts for whoever showed that one to the proxy', async () => {
    const [mine, others] = [await toldCertificate('mine'), await toldCertificate('others')];
    const { name, token } = await issued('svc:pages', { kind: 'x5t#S256', thumbprint: mine.thumbprint });
    const asked = [...about('PUT', `/pages/${name}`), ['Writ-Authorization', `Bearer ${token}`]] as [string, string][];
    const shown = (certificate: string): Headers => [...asked, ['Writ-Presenter-Certificate', certificate]];
    expect((await check(shown(mine.escaped))).status).toBe(200);
    expect(await check(shown(others.escaped))).toMatchObject({ status: 401, body: { code: 'binding_mismatch' } });
    expect(await check(asked)).toMatchObject({ status: 401, body: { code: 'not_bound' } });
    const field = 'writ-presenter-certificate';
    for (const wrong of [shown('rubbish'), [...shown(mine.escaped), [field, mine.escaped]] as Headers])
      expect(await check(wrong)).toMatchObject({ status: 400, body: { violations: [{ field }] } });
  });

  test('beside a lease, a bearer of the service itself does not count', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const own: [string, string] = ['Writ-Authorization', 'Bearer of-the-service'];
    expect((await check([...about('PUT', `/pages/${name}`), own, ...presenting(lease)])).status).toBe(200);
    expect((await check([...about('PUT', `/pages/${name}`), own])).status).toBe(401);
  });
});

describe('a request with nothing', () => {
  test('is refused, recorded, and found by its id (A1)', async () => {
    const name = page();
    const answer = await check([...about('PUT', `/pages/${name}`), ['X-Request-Id', `none-${name}`]]);
    expect(answer).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      body: { code: 'credential_required', resource: `page/${name}`, action: 'replace' },
    });
    await recorded(`none-${name}`, { reason: 'unknown_lease', resource: `page/${name}`, target: 'svc:pages' });
  });

  test('C14: passes where the kind only observes, and the answer says so', async () => {
    const answer = await check(about('PUT', `/drafts/${page()}`));
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'writ-reason': 'unknown_lease', 'writ-observed-only': 'true' },
    });
  });

  test('answers run and admission also where there is none, so that a proxy that copies them leaves no client its own', async () => {
    const none = { 'writ-run-id': '', 'writ-admission-id': '' };
    expect((await check(about('PUT', `/drafts/${page()}`))).headers).toMatchObject(none);
    expect((await check(about('GET', '/pages/x'))).headers).toMatchObject(none);
    const name = page();
    const untracked = await check([...about('PUT', `/pages/${name}`), ...presenting(await held(`page/${name}`))]);
    expect(untracked.headers).toMatchObject({ 'writ-reason': 'ok', 'writ-admission-id': '' });
  });

  test('passes where the route says that no check is needed', async () => {
    expect((await check(about('GET', '/pages/x'))).headers['writ-reason']).toBe('reads');
    expect((await check(about('POST', '/hooks/x'))).headers['writ-reason']).toBe('unprotected');
  });

  test('is refused where no route is declared, reads too, and that is recorded', async () => {
    const id = `unrouted-${page()}`;
    expect(await check([...about('DELETE', '/pages/x'), ['X-Request-Id', id]])).toMatchObject({
      status: 403,
      body: { code: 'unrouted' },
    });
    expect((await check(about('GET', '/elsewhere'))).status).toBe(403);
    await recorded(id, { reason: 'unrouted', resource: '', target: 'svc:pages' });
  });

  async function recorded(requestId: string, denial: object): Promise<void> {
    const query = { ...EVERYTHING, requestId, page: { size: 10, token: '' } };
    const { items } = await eventually(
      () => gateway.replica.api.listEvents(as('auditor'), query),
      (page) => page.items.length > 0,
    );
    const denials = items.flatMap(({ body }) => (JSON.parse(body) as { denials?: object[] }).denials ?? []);
    expect(denials).toContainEqual(expect.objectContaining(denial));
  }
});
