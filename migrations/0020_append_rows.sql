-- How an append brings its rows: as arrays of these types, which cost a quarter of what JSON does to read. They are not the
-- row types of the tables, since a replica of an older version goes on appending while a newer one has added columns: a
-- version that needs other columns makes another type, and leaves these.

CREATE TYPE writ.event_row AS (
  revision bigint, time_us bigint, batch_id uuid, kind text, body_version integer, actor text, run_id text, lease_id text,
  resources text[], request_ids text[], prev_hash bytea, hash bytea
);

CREATE TYPE writ.lease_row AS (
  lease_id text, run_id text, state writ.lease_state, generation bigint, requested_ttl_us bigint, ttl_us bigint,
  max_ttl_us bigint, created_at_us bigint, granted_at_us bigint, expires_at_us bigint, max_expires_at_us bigint,
  progress_window_us bigint, progress_marker text, progress_at_us bigint, claim_by_us bigint, queued_at bigint,
  waits_until_us bigint, attached_until_us bigint, attachment bigint, attached boolean, end_reason text,
  ended_at_us bigint, end_refusal text, credentials_until_us bigint, lock_delay_until_us bigint, lock_delayed boolean,
  delegated_from text
);

CREATE TYPE writ.lease_write_set_row AS (
  lease_id text, idempotency_key text, purpose text, request text, entries text, rule_locks text, take_over text
);

CREATE TYPE writ.key_name AS (scope text, key text);

CREATE TYPE writ.key_binding_row AS (
  scope text, key text, use text, fingerprint text, run_id text, lease_id text, bound_at_us bigint, stopped text,
  effective_at_us bigint
);
