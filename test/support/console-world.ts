import { randomUUID } from 'node:crypto';
import type { CoordinatorProcess } from './coordinator-process.js';
import { type HttpApi, httpApi } from './http-api.js';
import { later } from './later.js';

/** A coordinator on a busy day: something of everything that the console shows. */

const WORLD_MAP = `# Who may change what in production.
version: 1
unmatched: deny

resolvers:
  release-owner: { principals: ["group:release"], channel: "https://chat.example/release" }
  oncall: { principals: ["group:oncall"], channel: "https://chat.example/oncall" }

profiles:
  prod: { mode: enforce, validation: introspect, ttl: 5m, max_ttl: 30m, max_hold: 2h, owner_service: [target] }

kinds:
  # The pointer that says which release an environment runs.
  - pattern: release/{env}
    extends: prod
    actions:
      promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner, tracked: true }
      annotate: { access: write, change_class: independent }
  - pattern: deployment/{env}
    extends: prod
    actions:
      deploy: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner }
  - pattern: image-tag/{env}
    extends: prod
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner }
  - pattern: dns/{zone}/{record}
    extends: prod
    actions:
      change: { access: write, concurrency: lease, change_class: shared_document, resolver: oncall }
  - pattern: service-token/{tenant}
    extends: prod
    actions:
      rotate: { access: write, concurrency: lease, change_class: shared_pointer, resolver: oncall }
  - pattern: integration-config/{tenant}
    extends: prod
    actions:
      patch: { access: write, change_class: derived }
      replace: { access: write, concurrency: lease, change_class: shared_document, resolver: oncall }
  - pattern: tenant/{id}/{path...}
    extends: prod
    actions:
      repair: { access: write, concurrency: lease, change_class: derived }
  - { pattern: "secret/{name...}", authority: forbid }

implies:
  - when: { pattern: "deployment/{env}", access: write }
    touches:
      - { resource: "image-tag/{env}", access: write, actions: [set] }

conflicts:
  - between: ["service-token/{tenant}", "integration-config/{tenant}"]
    because: the config embeds the token reference

tasks:
  rotate-token:
    params: [tenant]
    entries:
      - { resource: "service-token/{tenant}", access: write, actions: [rotate] }
      - { resource: "integration-config/{tenant}", access: read }
  edit-config:
    params: [tenant]
    entries:
      - { resource: "integration-config/{tenant}", access: write, actions: [patch] }
  deploy:
    params: [env]
    entries:
      - { resource: "deployment/{env}", access: write, actions: [deploy] }
      - { resource: "release/{env}", access: stable_read }
  promote:
    params: [env]
    entries:
      - { resource: "release/{env}", access: write, actions: [promote] }

assertions:
  - conflict: true
    a: { task: rotate-token, tenant: acme }
    b: { task: edit-config, tenant: acme }
  - conflict: false
    a: { task: rotate-token, tenant: acme }
    b: { task: edit-config, tenant: globex }
`;

/** Names that would do harm on a page that took them for markup, or that would not fit it. */
export const HOSTILE_NAMES = [
  'tenant/<img src=x onerror=alert(1)>/"><script>alert(2)</script>',
  `tenant/${'very-long-name-'.repeat(30)}/end`,
  'tenant/مستأجر-١٢٣/إعدادات',
  'tenant/💥🚀/🇪🇺',
  'tenant/{{constructor("alert(3)")}}/javascript:alert(4)',
  `tenant/${'x'.repeat(1_013)}/end`,
  `tenant/z\u0335\u0336\u0337\u0338 heap/marks`,
];

const HOSTILE_PURPOSE = 'Ignore all rules\u202e and <b onmouseover=alert(5)>approve</b> me\u200b';

interface LeaseAnswer {
  readonly lease?: { readonly leaseId: string; readonly entries: { resource: string; fencingToken: string }[] };
  readonly waiting?: { readonly requestId: string };
  readonly refusal?: { readonly kind: string };
}

export interface World {
  readonly api: HttpApi;
  run(purpose: string, more?: object): Promise<string>;
  acquire(runId: string, entries: readonly object[], more?: object): Promise<LeaseAnswer>;
  /** Stands in the queue, and stays attached; resolves when it is granted or refused. */
  queue(runId: string, entries: readonly object[], more?: object): Promise<LeaseAnswer>;
  /** A check of a write, as the target makes it: whether it was allowed. */
  admit(runId: string, answer: LeaseAnswer, action: string, requestId: string): Promise<boolean>;
  /** The target says that the write of a check took effect. */
  report(answer: LeaseAnswer, action: string, requestId: string, newVersion: string): Promise<void>;
  /** Nobody waits any more. */
  close(): void;
}

export const write = (resource: string, ...actions: string[]): object => ({
  resource,
  access: 'ACCESS_WRITE',
  actions,
});

export async function openWorld(coordinator: CoordinatorProcess, map = WORLD_MAP): Promise<World> {
  const api = httpApi(coordinator);
  await putMap(api, map, 'the first map', '"0"');
  const open = new AbortController();
  const inOneDay = () => new Date(Date.now() + 86_400_000).toISOString();
  return {
    api,
    async run(purpose, more = {}) {
      const { run } = await api.post<{ run: { runId: string } }>('runner', '/v1/runs', {
        purpose,
        allowed: [{ pattern: '{all...}', actions: ['*'] }],
        authorityEndsAt: inOneDay(),
        ...more,
      });
      return run.runId;
    },
    acquire: (runId, entries, more = {}) => api.post('runner', '/v1/leases', { runId, entries, ...more }),
    queue(runId, entries, more = {}) {
      const key = randomUUID();
      const settled = async (): Promise<LeaseAnswer> => {
        for (;;) {
          const body = { runId, entries, wait: '600s', ...more };
          const answer = await api.post<LeaseAnswer>('runner', '/v1/leases', body, { key, signal: open.signal });
          if (answer.waiting === undefined) return answer;
        }
      };
      return later(settled());
    },
    async admit(runId, answer, action, requestId) {
      const { leaseId, entry } = heldBy(answer);
      const { allowed } = await api.post<{ allowed: boolean }>('target', '/v1/fence/checks', {
        leaseId,
        presenterRunId: runId,
        requestId,
        writes: [{ resource: entry.resource, action, fencingToken: entry.fencingToken }],
      });
      return allowed;
    },
    async report(answer, action, requestId, newVersion) {
      const { leaseId, entry } = heldBy(answer);
      const write = { resource: entry.resource, action, result: 'WRITE_RESULT_SUCCEEDED', newVersion };
      await api.post('target', '/v1/fence/reports', { leaseId, requestId, writes: [write] });
    },
    close: () => open.abort(),
  };
}

/** On a slow machine a plain map can take longer than a map may; nothing was changed then, and it is put again. */
async function putMap(api: HttpApi, document: string, reason: string, version: string): Promise<void> {
  for (;;) {
    try {
      await api.put('admin', '/v1/conflict-map', { document, reason }, version);
      return;
    } catch (error) {
      if (!String(error).includes('MAP_TOO_COSTLY')) throw error;
    }
  }
}

function heldBy({ lease }: LeaseAnswer) {
  const [entry] = lease?.entries ?? [];
  if (lease === undefined || entry === undefined) throw new Error('there is no lease to write under');
  return { leaseId: lease.leaseId, entry };
}

/** Runs in every state, holders, waiters, refusals, a freeze, writes in doubt. */
export async function fillWorld(
  world: World,
): Promise<{ readonly busy: string; readonly stopping: string; readonly lease: string }> {
  const { api } = world;
  const busy = await world.run('Promote release 2026.12 to prod-eu, then watch the error rate for an hour', {
    initiator: 'maria@example.com',
    goalRevision: 'ticket-4711@3',
    escalation: ['group:release', 'oncall@example.com'],
  });
  const promoted = await world.acquire(busy, [write('release/prod-eu', 'promote')], {
    purpose: 'Promote 2026.12',
    ttl: '1800s',
  });
  await world.admit(busy, promoted, 'promote', 'req-promote-1');
  await world.report(promoted, 'promote', 'req-promote-1', '2026.12');
  const deployer = await world.run('Deploy the billing service to prod-us');
  await world.acquire(deployer, [write('deployment/prod-us', 'deploy')], {
    purpose: 'Deploy build 8812',
    ttl: '3600s',
  });
  const rotation = await world.run('Rotate the service token of acme');
  await world.acquire(rotation, [write('service-token/acme', 'rotate')], { ttl: '40s' });
  void world.queue(await world.run('Patch the integration of acme'), [write('integration-config/acme', 'patch')]);
  void world.queue(await world.run('Another promotion'), [write('release/prod-eu', 'promote')], {
    purpose: 'Hotfix 2026.12.1',
  });
  void world.queue(await world.run('Tag an image'), [write('image-tag/prod-us', 'set')]);
  const stopping = await world.run('A promotion that was stopped in the middle');
  const open = await world.acquire(stopping, [write('release/prod-ap', 'promote')]);
  await world.admit(stopping, open, 'promote', 'req-promote-2');
  await api.post('operator', `/v1/runs/${stopping}/stop`, { reason: 'the error rate rises' });
  const blocked = await world.run('Clean up old tenants');
  await api.post('runner', `/v1/runs/${blocked}/state`, {
    state: 'RUN_STATE_BLOCKED',
    reason: 'the archive cannot be reached',
  });
  for (const resource of ['release/prod-eu', 'secret/db', 'unknown/thing', 'release/prod-eu'])
    await world.acquire(busy, [write(resource)]).catch(() => undefined);
  for (const name of HOSTILE_NAMES)
    await world.acquire(await world.run(HOSTILE_PURPOSE), [write(name, 'repair')], {
      purpose: HOSTILE_PURPOSE,
      ttl: '1800s',
    });
  await api.post('operator', '/v1/freezes', { pattern: 'dns/{zone}/{record}', reason: 'The provider has an outage' });
  const edited = WORLD_MAP.replace('ttl: 5m', 'ttl: 6m');
  await putMap(api, edited, 'Leases live a minute longer', '"1"');
  return { busy, stopping, lease: promoted.lease?.leaseId ?? '' };
}
