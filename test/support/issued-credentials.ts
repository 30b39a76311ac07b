import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { CallContext, IssuedCredential, WritApi } from '../../src/services/api.js';
import { as, createRun, granted, ISSUER, write } from './coordinator.js';

/** Leases with credentials, and what is asked about them. */

export const CREDENTIALS_MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer }, annotate: { access: write, change_class: derived } } }
  - { pattern: "pointer/{name}", owner_service: [target], actions: { set: { access: write, concurrency: lease, tracked: true } } }
  - { pattern: "tenant/{id...}", actions: { repair: { access: write, concurrency: lease, change_class: shared_document } } }
`;

let next = 0;
export const env = (): string => `env-${++next}`;

export async function hold(
  api: WritApi,
  resource = `release/${env()}`,
  action = 'promote',
  ttl = 120 * SECOND,
): Promise<Lease> {
  return granted(api, await createRun(api), [write(resource, action)], { ttl });
}

export async function issue(
  api: WritApi,
  lease: { runId: string; leaseId: string | null },
  more: { audience?: string; confirmation?: Confirmation; context?: CallContext } = {},
): Promise<IssuedCredential> {
  const { value } = await api.issueCredential(more.context ?? as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: more.audience ?? 'target',
    confirmation: more.confirmation ?? null,
    requestId: '',
  });
  if (value.credential === null) throw new Error(`refused: ${JSON.stringify(value.refusal)}`);
  return value.credential;
}

export async function check(
  api: WritApi,
  credential: string,
  lease: Lease,
  more: {
    resource?: string;
    action?: string;
    token?: number;
    presenter?: Confirmation;
    as?: CallContext;
    requestId?: string;
  } = {},
) {
  const entry = lease.entries[0];
  const { value } = await api.checkFence(more.as ?? as('target'), {
    leaseId: '',
    credential,
    presenter: more.presenter ?? null,
    presenterRunId: '',
    writes: [
      {
        resource: more.resource ?? entry?.resource ?? '',
        action: more.action ?? entry?.actions[0] ?? '',
        token: more.token ?? 0,
        observedVersion: null,
      },
    ],
    requestId: more.requestId ?? '',
  });
  return { ...value, reason: value.results[0]?.reason };
}

export const jwks = async (api: WritApi) => JSON.parse((await api.getKeys()).jwks) as JSONWebKeySet;

/** As a verifier that was told nothing but the issuer's keys. */
export async function verifyOffline(api: WritApi, token: string) {
  return jwtVerify(token, createLocalJWKSet(await jwks(api)), {
    algorithms: ['ES256'],
    issuer: ISSUER,
    audience: 'target',
    typ: 'at+jwt',
    requiredClaims: ['exp', 'iat', 'jti', 'sub'],
    maxTokenAge: 60,
    clockTolerance: 5,
  });
}
