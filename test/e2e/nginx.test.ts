import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { toTimestamp } from '../../src/clients/common/time.js';
import { acquire, type Lease } from '../../src/clients/runner/index.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { send } from '../support/gateway.js';
import { type NginxProcess, startNginx, whyNoNginx } from '../support/nginx.js';

/**
 * The real nginx with the configuration of the example, in front of the example's service, which knows nothing of Writ;
 * a coordinator as users run it. What the service has taken is read past nginx.
 */

const EXAMPLE = new URL('../../examples/python-behind-nginx/', import.meta.url);
const missing = whyNoNginx();
if (missing !== '') console.warn(`skipped: nginx: ${missing}`);

let coordinator: CoordinatorProcess;
let nginx: NginxProcess;
let service: { readonly address: string; stop(): Promise<void> };
let runner: WritClient;
let operator: WritClient;

async function startService() {
  const child = spawn('/usr/bin/python3', [fileURLToPath(new URL('service.py', EXAMPLE)), '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const early = ended.then(() => Promise.reject(new Error('the service ended before it was ready')));
  early.catch(() => undefined);
  const [port] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), early])) as [string];
  return {
    address: `127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

describe.skipIf(missing !== '')(
  missing === '' ? 'a service behind nginx' : `a service behind nginx (skipped: ${missing})`,
  () => {
    beforeAll(async () => {
      coordinator = await startCoordinatorProcess({
        env: { WRIT_ROUTES_FILE: fileURLToPath(new URL('routes.yaml', EXAMPLE)) },
      });
      service = await startService();
      nginx = await startNginx({ writ: coordinator.http, service: service.address, token: coordinator.tokens.target });
      runner = coordinator.client('runner');
      operator = coordinator.client('operator');
      const document = await readFile(new URL('map.yaml', EXAMPLE), 'utf8');
      await coordinator.client('admin').conflictMap.putConflictMap({ document, expectedVersion: 0n, reason: 'a test' });
    });

    afterAll(async () => {
      await nginx?.stop();
      await service?.stop();
      await coordinator?.stop();
      if (coordinator !== undefined) await rm(coordinator.dataDir, { recursive: true, force: true });
    });

    let serial = 0;
    const page = (): string => `page-${++serial}`;

    async function held(...names: string[]): Promise<Lease> {
      const { run } = await runner.run.createRun({
        purpose: 'a test',
        allowed: [{ pattern: 'page/{name}', actions: ['replace'] }],
        authorityEndsAt: toTimestamp((Date.now() + 600_000) * 1_000),
      });
      const resources = names.map((name) => ({ resource: `page/${name}`, actions: ['replace'] }));
      return acquire(runner, { runId: run?.runId ?? '', resources });
    }

    type Headers = readonly (readonly [string, string])[];
    const presenting = (lease: Lease, name: string): [string, string][] => [
      ['Writ-Lease', lease.id],
      ['Writ-Fencing-Token', String(lease.token(`page/${name}`))],
    ];

    const put = (path: string, headers: Headers, version = 0, via = nginx.url) =>
      send(via, path, [['If-Match', `"${version}"`], ...headers], { method: 'PUT', body: '{"text":"new"}' });

    /** The version that the service has, asked past nginx; 0: no such page. */
    async function versionOf(name: string): Promise<number> {
      const answer = await send(`http://${service.address}`, `/pages/${name}`, []);
      return answer.status === 404 ? 0 : (answer.body.version as number);
    }

    test('a granted run writes, and the service is told whose write it is', async () => {
      const name = page();
      const lease = await held(name);
      const answer = await put(`/pages/${name}`, [...presenting(lease, name), ['Writ-Run-Id', 'somebody']]);
      expect(answer).toMatchObject({ status: 200, body: { version: 1, by: lease.runId } });
      expect((await send(nginx.url, `/pages/${name}`, [])).body).toMatchObject({ version: 1 });
      await lease.release();
    });

    test('C9: a credential does as well', async () => {
      const name = page();
      const lease = await held(name);
      const { outcome } = await runner.credential.issueCredential({
        runId: lease.runId,
        leaseId: lease.id,
        audience: 'target',
      });
      if (outcome?.$case !== 'credential') throw new Error('no credential');
      const answer = await put(`/pages/${name}`, [['Authorization', `Bearer ${outcome.value.token}`]]);
      expect(answer).toMatchObject({ status: 200, body: { version: 1, by: lease.runId } });
      await lease.release();
      const late = await put(`/pages/${name}`, [['Authorization', `Bearer ${outcome.value.token}`]], 1);
      expect(late).toMatchObject({ status: 409, body: { code: 'released' } });
      expect(await versionOf(name)).toBe(1);
    });

    test('everybody else is refused with what an agent can act on, and nothing is written', async () => {
      const [name, other] = [page(), page()];
      const lease = await held(name);
      const mine = presenting(lease, name);
      const refused = async (path: string, headers: Headers, status: number, code: string): Promise<void> => {
        const answer = await put(path, headers);
        expect(answer.headers['content-type'], answer.text).toBe('application/problem+json');
        expect(answer).toMatchObject({ status, headers: { 'writ-reason': code }, body: { status, code } });
        expect(answer.body.next).toEqual(expect.any(String));
      };
      await refused(`/pages/${name}`, [], 401, 'credential_required');
      // Its problem is longer than the header that brings it to nginx.
      await refused(`/pages/${encodeURIComponent('ü'.repeat(400))}`, [], 401, 'credential_required');
      await refused(`/pages/${name}`, [['Authorization', 'Bearer rubbish']], 401, 'malformed');
      await refused(`/pages/${other}`, mine, 403, 'not_covered');
      await refused(`/nowhere/${name}`, mine, 403, 'unrouted');
      await refused(`/pages/a%2Fb`, mine, 400, 'malformed_request');
      await refused(
        `/pages/${name}`,
        [
          ['Writ-Lease', lease.id],
          ['Writ-Fencing-Token', '7'],
        ],
        409,
        'stale_token',
      );
      await operator.lease.revokeLease({ leaseId: lease.id, reason: 'a test' });
      await refused(`/pages/${name}`, mine, 409, 'revoked');
      const challenged = await put(`/pages/${name}`, []);
      expect(challenged.headers['www-authenticate']).toMatch(/^Bearer/);
      expect([await versionOf(name), await versionOf(other)]).toEqual([0, 0]);
    });

    test('C6: a second holder writes, and the first one, late, does not', async () => {
      const name = page();
      const first = await held(name);
      const old = presenting(first, name);
      await first.release();
      const second = await held(name);
      expect((await put(`/pages/${name}`, presenting(second, name))).status).toBe(200);
      expect(await put(`/pages/${name}`, old, 1)).toMatchObject({ status: 409, body: { code: 'released' } });
      expect(await versionOf(name)).toBe(1);
      await second.release();
    });

    test('I1: what a client sends in place of the proxy gains it nothing', async () => {
      const [mine, others] = [page(), page()];
      const lease = await held(mine);
      const presented = presenting(lease, mine);
      const token = coordinator.tokens.target;
      const tries: Headers[] = [
        [['X-Original-URI', `/pages/${mine}`]],
        [
          ['X-Original-URI', `/pages/${mine}`],
          ['X-Original-URI', `/pages/${mine}`],
        ],
        [['X-Original-Method', 'GET']],
        [['X-Original-Host', 'other.example']],
        [
          ['X-Forwarded-Uri', `/pages/${mine}`],
          ['X-Forwarded-Method', 'GET'],
        ],
        [['Writ-Authorization', `Bearer ${token}`]],
        [
          ['Writ-Authorization', 'Bearer a'],
          ['Writ-Authorization', 'Bearer b'],
        ],
        [['Authorization', `Bearer ${token}`]],
        [
          ['Authorization', `Bearer ${token}`],
          ['Authorization', 'Bearer b'],
        ],
        [
          ['Writ-Reason', 'ok'],
          ['Writ-Run-Id', lease.runId],
        ],
        [
          ['X-HTTP-Method-Override', 'GET'],
          ['X-Original-URL', `/pages/${mine}`],
        ],
        [
          ['Content-Length', '14'],
          ['Writ-Presenter-Certificate', 'x'],
        ],
      ];
      for (const headers of tries) {
        const withLease = await put(`/pages/${others}`, [...presented, ...headers]);
        expect([400, 401, 403], JSON.stringify(headers)).toContain(withLease.status);
        const without = await put(`/pages/${mine}`, headers);
        expect([400, 401, 403], JSON.stringify(headers)).toContain(without.status);
      }
      expect([await versionOf(mine), await versionOf(others)]).toEqual([0, 0]);
      // Nor is the check itself there for clients.
      for (const path of ['/writ-check', '/writ-undecided', '/v1/fence/check'])
        expect([403, 404]).toContain((await send(nginx.url, path, presented)).status);
      await lease.release();
    });

    test('a path that nginx and the service could read in two ways is refused', async () => {
      const [mine, others] = [page(), page()];
      const lease = await held(mine);
      const presented = presenting(lease, mine);
      const paths = [
        `/pages/${mine}/../${others}`,
        `/pages/${mine}/%2e%2e/${others}`,
        `//pages/${others}`,
        `/pages//${others}`,
        `/pages/${others}%00`,
        `/pages/${others};x=${mine}`,
        `/pages/${mine}%2F..%2F${others}`,
      ];
      for (const path of paths) {
        const answer = await put(path, presented);
        expect([400, 403], `${path}: ${answer.text}`).toContain(answer.status);
      }
      expect([await versionOf(mine), await versionOf(others)]).toEqual([0, 0]);
      // The absolute form is another spelling of the same request, for nginx and so for the check.
      const absolute = await put(`http://elsewhere.example/pages/${others}`, presented);
      expect(absolute).toMatchObject({ status: 403, body: { code: 'not_covered' } });
      expect((await put(`http://elsewhere.example/pages/${mine}`, presented)).status).toBe(200);
      await lease.release();
    });

    test('T3: of two writes from one version, the service takes one', async () => {
      const name = page();
      const lease = await held(name);
      const answers = await Promise.all([1, 2].map(() => put(`/pages/${name}`, presenting(lease, name))));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412]);
      await lease.release();
    });

    test('a proxy that is nobody lets nothing through, and does not blame the agent', async () => {
      const name = page();
      const lease = await held(name);
      const stranger = await startNginx({ writ: coordinator.http, service: service.address, token: 'nobody' });
      try {
        const answer = await put(`/pages/${name}`, presenting(lease, name), 0, stranger.url);
        expect(answer).toMatchObject({ status: 503, body: { code: 'coordinator_unreachable', retryable: true } });
        expect(await versionOf(name)).toBe(0);
      } finally {
        await stranger.stop();
        await lease.release();
      }
    });

    test.skipIf(process.getuid?.() !== 0)('an ordinary user can run it', async () => {
      const nobody = 65_534;
      const own = await startNginx({
        writ: coordinator.http,
        service: service.address,
        token: coordinator.tokens.target,
        uid: nobody,
      });
      try {
        expect(await put(`/pages/${page()}`, [], 0, own.url)).toMatchObject({
          status: 401,
          body: { code: 'credential_required' },
        });
      } finally {
        await own.stop();
      }
    });

    test('P8: without a coordinator nothing is written', async () => {
      const name = page();
      const lease = await held(name);
      const presented = presenting(lease, name);
      const refused = async (): Promise<void> => {
        const answer = await put(`/pages/${name}`, presented);
        expect(answer.headers['content-type']).toBe('application/problem+json');
        expect(answer).toMatchObject({
          status: 503,
          headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
          body: { status: 503, code: 'coordinator_unreachable', retryable: true },
        });
        expect(await versionOf(name)).toBe(0);
      };
      // One that hangs, then one that is gone.
      coordinator.signal('SIGSTOP');
      await refused();
      await coordinator.kill9();
      await refused();
    });
  },
);
