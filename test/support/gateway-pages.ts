import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { parseRouteTable } from '../../src/route-table/index.js';
import type { TargetRoutes } from '../../src/services/route-tables.js';
import { as, createRun, granted, putMap, write } from './coordinator.js';
import { send, startGateway, type TestGateway } from './gateway.js';
import { createTestDatabase } from './postgres.js';

/** A service of pages behind a proxy that asks the coordinator for every request. */

export const PAGES_MAP = `
version: 1
kinds:
  - { pattern: "page/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document }, patch: { access: write, change_class: derived } } }
  - { pattern: "menu/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "owned/{name}", owner_service: [svc:other], actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "draft/{name}", mode: observe, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "pointer/{name}", actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } } }
`;
const replace = (resource: string) => ({
  resource,
  action: 'replace',
  change_class: 'shared_document',
  resolver: 'editor',
});
const TABLE = parseRouteTable({
  version: 1,
  routes: [
    { method: 'PUT', path: '/pages/{name}', writes: [replace('page/{name}')] },
    {
      method: 'PATCH',
      path: '/pages/{name}',
      writes: [{ resource: 'page/{name}', action: 'patch', change_class: 'derived' }],
    },
    { method: 'PUT', path: '/sites/{name}', writes: [replace('page/{name}'), replace('menu/{name}')] },
    { method: 'PUT', path: '/owned/{name}', writes: [replace('owned/{name}')] },
    { method: 'PUT', path: '/drafts/{name}', writes: [replace('draft/{name}')] },
    {
      method: 'PUT',
      path: '/pointers/{name}',
      writes: [{ resource: 'pointer/{name}', action: 'set', change_class: 'shared_pointer' }],
    },
    { method: ['GET', 'HEAD'], path: '/pages/{name}', reads: true },
    { method: 'POST', path: '/hooks/{name}', unprotected: 'signed by the sender' },
  ],
});
export const PAGES_ROUTES = new Map<string, TargetRoutes>([
  ['svc:pages', { namespace: 'default', table: TABLE }],
  ['svc:team', { namespace: 'team-a', table: TABLE }],
  ['svc:stray', { namespace: 'default', table: TABLE }],
]);

let serial = 0;
export const page = (): string => `p-${++serial}`;
export type Headers = readonly (readonly [string, string])[];

/** What a proxy sends about a request. */
export const about = (method: string, uri: string, host = 'pages.example'): [string, string][] => [
  ['X-Original-Method', method],
  ['X-Original-Host', host],
  ['X-Original-URI', uri],
];
export const IDENTITY: [string, string] = ['Authorization', 'Bearer token-svc:pages'];

export const tokenOf = (lease: Lease, at = 0): string => String(lease.entries[at]?.token);
export const presenting = (lease: Lease, token = tokenOf(lease)): [string, string][] => [
  ['Writ-Lease', lease.leaseId],
  ['Writ-Fencing-Token', token],
];

export type Pages = Awaited<ReturnType<typeof startPages>>;

export async function startPages() {
  const database = await createTestDatabase();
  const gateway: TestGateway = await startGateway(database.url, PAGES_ROUTES);
  const { api } = gateway.replica;
  await putMap(api, PAGES_MAP);
  return {
    gateway,

    /** Asks as the proxy does. */
    check: (headers: Headers, identity = IDENTITY) =>
      send(gateway.http, '/v1/fence/check', identity[1] === '' ? headers : [identity, ...headers]),

    async held(...resources: string[]): Promise<Lease> {
      const entries = resources.map((resource) => write(resource, 'replace'));
      return granted(api, await createRun(api), entries, { ttl: 120 * SECOND });
    },

    report: (admissionId: string, result: 'succeeded' | 'failed') =>
      api.reportWrite(as('target', { name: 'svc:pages' }), {
        leaseId: '',
        credential: '',
        requestId: '',
        detail: '',
        writes: [
          { admissionId, resource: '', action: '', result, observedVersion: null, newVersion: null, changedFields: [] },
        ],
      }),

    async stop(): Promise<void> {
      await gateway.stop();
      await database.drop();
    },
  };
}
