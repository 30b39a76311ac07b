/**
 * The demo's conflict map, as an admin would write it.
 *
 * The notification policy has one action, and it is optimistic although the document is shared, so that the version
 * check alone has to keep two agents from undoing each other's work (T3).
 */
export const DEMO_MAP = `version: 1
unmatched: deny
resolvers:
  release-owner: { principals: ["group:release"], channel: "https://chat.example/release" }
  migration-owner: { principals: ["group:data"], channel: "https://chat.example/data" }
  alerts-owner: { principals: ["person:oncall"], channel: "https://chat.example/oncall" }
profiles:
  shared: { authority: write, mode: enforce, validation: introspect, ttl: 20s, max_ttl: 2m, max_hold: 10m }
kinds:
  - pattern: deployment/{env}
    extends: shared
    actions: { roll_out: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: image-tag/{env}
    extends: shared
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: release/{env}
    extends: shared
    actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: route/{env}
    extends: shared
    actions: { reroute: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: dns/{env}
    extends: shared
    actions: { point: { access: write, concurrency: lease, change_class: shared_pointer, resolver: release-owner } }
  - pattern: migration-journal/{env}
    extends: shared
    actions: { append: { access: write, concurrency: lease, change_class: independent, resolver: migration-owner } }
  - pattern: notification-channel/{env}
    extends: shared
    actions: { announce: { access: write, concurrency: lease, change_class: independent, resolver: alerts-owner } }
  - pattern: migration/{customer}
    extends: shared
    actions: { write_rows: { access: write, concurrency: lease, change_class: independent, resolver: migration-owner } }
  # Optimistic on purpose: the version check alone must keep one agent from undoing another's change.
  - pattern: notification-policy/{id}
    extends: shared
    actions: { change: { access: write, concurrency: optimistic, change_class: shared_document, resolver: alerts-owner } }
implies:
  # Updating an environment touches all of this, whatever the task says it is about.
  - when: { pattern: "deployment/{env}", access: write }
    touches:
      - { resource: "image-tag/{env}", access: write, actions: [set] }
      - { resource: "release/{env}", access: write, actions: [promote] }
      - { resource: "route/{env}", access: write, actions: [reroute] }
      - { resource: "dns/{env}", access: write, actions: [point] }
      - { resource: "migration-journal/{env}", access: write, actions: [append] }
      - { resource: "notification-channel/{env}", access: write, actions: [announce] }
assertions:
  - conflict: true
    a: { entries: [{ resource: deployment/staging, access: write, actions: [roll_out] }] }
    b: { entries: [{ resource: route/staging, access: write, actions: [reroute] }] }
  - conflict: false
    a: { entries: [{ resource: deployment/staging, access: write, actions: [roll_out] }] }
    b: { entries: [{ resource: deployment/qa, access: write, actions: [roll_out] }] }
`;

/** What "update the environment" touches beside the deployment itself. */
export const IMPLIED_BY_DEPLOYMENT = [
  'image-tag',
  'release',
  'route',
  'dns',
  'migration-journal',
  'notification-channel',
] as const;
