/** Kinds that are implied, that exclude each other, that are forbidden, and that are only observed. */
export const TIED_MAP = `
version: 1
unmatched: deny
profiles: { prod: { mode: enforce, ttl: 60s, max_ttl: 5m, max_hold: 30m } }
kinds:
  - { pattern: "release/{env}", extends: prod, actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer }, annotate: { access: write, change_class: derived } } }
  - { pattern: "deployment/{env}", extends: prod, actions: { update: { access: write, concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "image-tag/{env}", extends: prod, actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } } }
  - { pattern: "service-token/{tenant}", extends: prod, actions: { rotate: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "integration-config/{tenant}", extends: prod, actions: { edit: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "secret/{name...}", authority: forbid }
  - { pattern: "wiki/{page...}", mode: observe, actions: { edit: { access: write, change_class: derived } } }
implies:
  - when: { pattern: "deployment/{env}", access: write }
    touches: [ { resource: "image-tag/{env}", access: write, actions: [set] } ]
conflicts: [ { between: ["service-token/{tenant}", "integration-config/{tenant}"], because: "the config embeds the token reference" } ]
`;
