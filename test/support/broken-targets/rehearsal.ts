/** How the suite speaks to the service in service.ts, and the conflict map for both. */

export const TARGETS_MAP = `version: 1
resolvers:
  release-owner: { principals: ["group:release"] }
  alerts-owner: { principals: ["person:oncall"] }
  account-owner: { principals: ["person:accounts"] }
kinds:
  - pattern: release/{env}
    actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: release/local
    validation: local
    actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: release/tracked
    actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner, tracked: true } }
  - pattern: policy/{id}
    actions: { change: { access: write, change_class: shared_document, resolver: alerts-owner } }
  - pattern: group/{id}
    actions: { edit: { access: write, change_class: membership, resolver: account-owner } }
`;

export type KindName = keyof typeof RESOURCES;

const RESOURCES = {
  release: `
  - resource: release/rehearsal
    action: promote
    change_class: shared_pointer
    open: { path: /release/rehearsal/open }
    read: { path: /release/rehearsal }
    write:
      method: PUT
      path: /release/rehearsal
      headers: { if-match: "{etag}", idempotency-key: "{idempotency_key}" }
    changes:
      a: { body: { image: "shop:a-{unique}" } }
      b: { body: { image: "shop:b-{unique}" } }
      late: { headers: { if-match: "*" }, body: { image: "shop:late-{unique}" } }
    elsewhere: { resource: release/elsewhere, action: promote }`,
  policy: `
  - resource: policy/rehearsal
    action: change
    change_class: shared_document
    read: { path: /policy/rehearsal }
    write:
      method: PATCH
      path: /policy/rehearsal
      headers: { if-match: "{etag}", idempotency-key: "{idempotency_key}" }
    changes:
      a: { body: { destinations: ["pager", "chat-{unique}"] } }
      b: { body: { severity: "critical-{unique}" } }
      replace: { method: PUT, body: { destinations: ["pager", "mail-{unique}"], severity: "{content/severity}" } }
    elsewhere: { resource: policy/elsewhere, action: change }`,
  group: `
  - resource: group/rehearsal
    action: edit
    change_class: membership
    read: { path: /group/rehearsal }
    write:
      method: PUT
      path: /group/rehearsal
      headers: { if-match: "{etag}", idempotency-key: "{idempotency_key}" }
    changes:
      a: { body: { members: ["ann", "a-{unique}"] } }
      b: { body: { members: ["ann", "b-{unique}"] } }
      add: { method: POST, path: /group/rehearsal/members, body: "added-{unique}" }
      replace: { body: { members: "{content/members}" } }
    elsewhere: { resource: group/elsewhere, action: edit }`,
} as const;

export const KINDS = Object.keys(RESOURCES) as readonly KindName[];

export interface RehearsalOptions {
  readonly runKey: string;
  readonly proxyPort: number;
  readonly kinds?: readonly KindName[];
  /** Present credentials for this target. */
  readonly audience?: string;
}

function runsOf({ runKey, audience }: RehearsalOptions): string {
  if (audience !== undefined)
    return `
  audience: ${audience}
  short_ttl: 12s
  headers: { authorization: "Bearer {credential}" }`;
  return `
  secret: { command: [echo, "{run_id}.${runKey}"] }
  headers:
    authorization: "Bearer {secret}"
    writ-lease: "{lease}"
    writ-fencing-token: "{token}"`;
}

export function rehearsalConfig(options: RehearsalOptions): string {
  const { proxyPort, kinds = KINDS } = options;
  return `version: 1
target: { name: svc:shop }
coordinator: { proxy: { listen: "127.0.0.1:${proxyPort}" } }
runs:${runsOf(options)}
pause:
  after_check: { header: x-pause-after-check }
  before_commit: { header: x-pause-before-commit }
own_record: { path: "/requests/{request_id}", run: /0/run_id }
resources:${kinds.map((kind) => RESOURCES[kind]).join('')}
`;
}
