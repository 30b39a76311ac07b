import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { makeToken } from '../../../src/auth/tokens.js';
import { file, get, type Held, hold, lastIssued, secrets, tokens } from './world.js';

/** Gateways that ask for what runs present to services. */
export function gateways(): void {
  it('of gateways that ask, with what runs present and what they should not', async () => {
    const own = await hold('release/gateway', { certified: true });
    const credential = lastIssued();
    const plain = await hold('release/gateway-plain');
    const unbound = lastIssued();
    const unknown = makeToken().token;
    secrets.add('a token in the place of a credential', unknown);
    const certificate = encodeURIComponent(readFileSync(file('runner.pem'), 'utf8'));
    const bearer = (token: string) => ({ 'writ-authorization': `Bearer ${token}` });
    const lease = (held: Held, token = held.token) => ({
      'writ-lease': held.leaseId,
      'writ-fencing-token': String(token),
    });
    const presented: Record<string, string>[] = [
      {},
      { ...bearer(credential), 'writ-presenter-certificate': certificate },
      bearer(credential),
      bearer(unbound),
      bearer(`${unbound}x`),
      bearer(unknown),
      { 'writ-authorization': `DPoP ${unbound}`, dpop: unbound },
      { 'writ-authorization': unknown },
      lease(plain),
      lease(plain, 7n),
      { ...lease(plain), ...bearer(unbound) },
      { ...lease(plain), ...bearer(unknown) },
      { ...lease(own), 'writ-fencing-token': `${own.token},${own.token}` },
      { ...lease(own), 'writ-presenter-certificate': unknown },
    ];
    const authorization = `Bearer ${tokens.target}`;
    const statuses = new Set<number>();
    for (const path of ['/releases/gateway', '/releases/gateway-plain', '/elsewhere', '/a/../b'])
      for (const headers of presented) {
        const request = { 'x-original-method': 'PUT', 'x-original-uri': path, 'x-original-host': 'service.test' };
        const { status } = await get('GET /v1/fence/check', { authorization, ...request, ...headers }, '', 'gateways');
        statuses.add(status);
      }
    for (const status of [200, 400, 401, 403, 409]) expect(statuses).toContain(status);
    const properties: object[] = [
      { credential: unbound },
      { credential: `${unbound}x` },
      { credential: unknown, cnf: { jkt: 'A'.repeat(43) } },
      { lease_id: plain.leaseId, fencing_token: String(plain.token) },
      { lease_id: plain.leaseId, fencing_token: '7' },
      { lease_id: plain.leaseId, fencing_token: unknown },
      { token: unknown },
    ];
    for (const each of properties) {
      const question = {
        subject: { type: 'run', id: plain.runId, properties: each },
        action: { name: 'promote' },
        resource: { type: 'resource', id: plain.resource },
      };
      const json = { authorization, 'content-type': 'application/json' };
      const text = JSON.stringify(question);
      await get('POST /access/v1/evaluation', json, text, 'gateways');
      await get('POST /access/v1/evaluations', json, JSON.stringify({ evaluations: [question, each] }), 'gateways');
      await get('POST /access/v1/evaluation', json, `${text.slice(0, -1)}, "x": ${unknown}}`, 'gateways');
    }
  });
}
