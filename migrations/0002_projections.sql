-- Projections: what the fold of the log is, one row per record, written by the statement that appends the events. A
-- replica loads its memory from them; what is no longer in memory is answered from them.

CREATE TYPE writ.lease_state AS ENUM ('waiting', 'active', 'ended');
CREATE TYPE writ.run_state AS ENUM (
  'active', 'waiting_for_input', 'blocked', 'stopping', 'stopped', 'finished', 'failed', 'expired'
);

-- The part of a lease that changes. A renewal rewrites this row and nothing else, so the row is small, pages keep room
-- for the next version (fillfactor), and no index holds what a renewal changes: HOT, no index entry, no dead one.
-- There is deliberately no index on an expiry.
CREATE TABLE writ.lease (
  namespace          text   COLLATE "C" NOT NULL,
  lease_id           text   COLLATE "C" NOT NULL,
  run_id             text   COLLATE "C" NOT NULL,
  state              writ.lease_state NOT NULL,
  generation         bigint NOT NULL,
  requested_ttl_us   bigint,
  ttl_us             bigint NOT NULL,
  max_ttl_us         bigint NOT NULL,
  created_at_us      bigint NOT NULL,
  granted_at_us      bigint,
  expires_at_us      bigint,
  max_expires_at_us  bigint,
  progress_window_us bigint,
  progress_marker    text,
  progress_at_us     bigint,
  claim_by_us        bigint,
  queued_at          bigint,
  waits_until_us     bigint,
  attached_until_us  bigint,
  attachment         bigint,
  attached           boolean,
  end_reason         text   COLLATE "C",
  ended_at_us        bigint,
  CONSTRAINT lease_pkey PRIMARY KEY (namespace, lease_id),
  CONSTRAINT lease_ended CHECK (
    (state = 'ended') = (end_reason IS NOT NULL) AND (state = 'ended') = (ended_at_us IS NOT NULL)
  ),
  -- P5: an expiry never passes the maximum.
  CONSTRAINT lease_active CHECK (
    state <> 'active' OR (granted_at_us IS NOT NULL AND expires_at_us IS NOT NULL AND expires_at_us <= max_expires_at_us)
  ),
  CONSTRAINT lease_waiting CHECK (
    (state <> 'waiting' OR queued_at IS NOT NULL)
    AND num_nulls(queued_at, waits_until_us, attached_until_us, attachment, attached) IN (0, 5)
  )
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX lease_live ON writ.lease (namespace, lease_id) WHERE state <> 'ended';
CREATE INDEX lease_run ON writ.lease (namespace, run_id, lease_id);

-- The part of a lease that changes only with its generation, if at all. `request`, `entries` and `rule_locks` are JSON
-- in the compact form of src/storage/postgres/lease-rows.ts.
CREATE TABLE writ.lease_write_set (
  namespace       text COLLATE "C" NOT NULL,
  lease_id        text COLLATE "C" NOT NULL,
  idempotency_key text NOT NULL,
  purpose         text NOT NULL,
  request         text,
  entries         text NOT NULL,
  rule_locks      text NOT NULL,
  CONSTRAINT lease_write_set_pkey PRIMARY KEY (namespace, lease_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE TABLE writ.run (
  namespace            text   COLLATE "C" NOT NULL,
  run_id               text   COLLATE "C" NOT NULL,
  idempotency_key      text   NOT NULL,
  state                writ.run_state NOT NULL,
  state_reason         text   NOT NULL,
  block_cause          text   COLLATE "C",
  purpose              text   NOT NULL,
  goal_revision        text   NOT NULL,
  initiator            text   NOT NULL,
  principal            text   COLLATE "C" NOT NULL,
  allowed              text   NOT NULL,
  escalation           text   NOT NULL,
  authority_ends_at_us bigint NOT NULL,
  created_at_us        bigint NOT NULL,
  ended_at_us          bigint,
  CONSTRAINT run_pkey PRIMARY KEY (namespace, run_id),
  CONSTRAINT run_ended CHECK ((state IN ('stopped', 'finished', 'failed', 'expired')) = (ended_at_us IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX run_live ON writ.run (namespace, run_id) WHERE ended_at_us IS NULL;
-- The purge takes the longest ended first.
CREATE INDEX run_ended_at ON writ.run (namespace, ended_at_us, run_id) WHERE ended_at_us IS NOT NULL;

-- Idempotency keys (P6).
CREATE TABLE writ.key_binding (
  namespace   text   COLLATE "C" NOT NULL,
  scope       text   COLLATE "C" NOT NULL,
  key         text   COLLATE "C" NOT NULL,
  use         text   COLLATE "C" NOT NULL,
  fingerprint text   COLLATE "C" NOT NULL,
  run_id      text   COLLATE "C" NOT NULL,
  lease_id    text   COLLATE "C" NOT NULL,
  bound_at_us bigint NOT NULL,
  CONSTRAINT key_binding_pkey PRIMARY KEY (namespace, scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- The purge: keys of a run go with it, keys of no run by age.
CREATE INDEX key_binding_run ON writ.key_binding (namespace, run_id, bound_at_us);

-- Every version of the conflict map; never changed.
CREATE TABLE writ.map_version (
  namespace     text   COLLATE "C" NOT NULL,
  version       bigint NOT NULL CHECK (version >= 1),
  text          text   NOT NULL,
  document      text   NOT NULL,
  author        text   NOT NULL,
  reason        text   NOT NULL,
  created_at_us bigint NOT NULL,
  CONSTRAINT map_version_pkey PRIMARY KEY (namespace, version)
);

-- Resources that were asked for and that no kind of the map matches (C14).
CREATE TABLE writ.unmatched_resource (
  namespace       text   COLLATE "C" NOT NULL,
  resource        text   COLLATE "C" NOT NULL,
  times           bigint NOT NULL,
  last_seen_at_us bigint NOT NULL,
  CONSTRAINT unmatched_resource_pkey PRIMARY KEY (namespace, resource)
) WITH (fillfactor = 70);
