-- The log: the only truth (P7, P8). Everything else in this schema is a projection of it, or housekeeping.
--
-- Names and ids are compared byte for byte, whatever the collation of the database: "C" says so, and is the fastest.

CREATE TABLE writ.event (
  namespace    text    COLLATE "C" NOT NULL,
  revision     bigint  NOT NULL CHECK (revision >= 1),
  -- Microseconds of the database clock since 1970, as everywhere in this schema. A timestamptz would do for Postgres,
  -- but the value takes part in the hash, and a Date of JavaScript loses the microseconds.
  time_us      bigint  NOT NULL CHECK (time_us > 0),
  -- Common to all events of one append: tells whether an append with a lost reply happened.
  batch_id     uuid    NOT NULL,
  kind         text    COLLATE "C" NOT NULL CHECK (kind <> ''),
  body_version integer NOT NULL CHECK (body_version >= 1),
  actor        text    NOT NULL,
  run_id       text    COLLATE "C" NOT NULL,
  lease_id     text    COLLATE "C" NOT NULL,
  resources    text[]  NOT NULL,
  request_ids  text[]  NOT NULL,
  -- Canonical JSON as text, since its bytes are hashed; json would keep them too, jsonb would not.
  body         text    NOT NULL,
  prev_hash    bytea   NOT NULL CHECK (octet_length(prev_hash) = 32),
  hash         bytea   NOT NULL CHECK (octet_length(hash) = 32),
  -- One winner per revision: the statement that appends is built on this key.
  CONSTRAINT event_pkey PRIMARY KEY (namespace, revision)
) WITH (
  -- Insert-only: frozen early and in small portions rather than late and all at once.
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

-- Where the events of a run or of a lease are found; most searches of an audit start from one of them.
CREATE INDEX event_run ON writ.event (namespace, run_id, revision) WHERE run_id <> '';
CREATE INDEX event_lease ON writ.event (namespace, lease_id, revision) WHERE lease_id <> '';
-- The identity that was recorded last, without a walk through the log.
CREATE INDEX event_identity ON writ.event (namespace, revision) WHERE kind = 'database_identified';

-- `why REQUEST_ID`: few events carry request ids, so a table of its own costs ordinary appends nothing.
CREATE TABLE writ.event_request (
  namespace  text   COLLATE "C" NOT NULL,
  request_id text   COLLATE "C" NOT NULL,
  revision   bigint NOT NULL,
  CONSTRAINT event_request_pkey PRIMARY KEY (namespace, request_id, revision)
);

-- The log is insert-only. The hash chain shows a change afterwards; this refuses it, at no cost to an INSERT (it is a
-- trigger per statement of the other kinds). Archiving, which cuts old events at a checkpoint, says so in its own
-- transaction: SET LOCAL writ.archiving = 'on'.
CREATE FUNCTION writ.refuse_change_of_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND current_setting('writ.archiving', true) = 'on' THEN
    RETURN NULL;
  END IF;
  RAISE EXCEPTION 'the log is insert-only: % on writ.% is refused', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'object_not_in_prerequisite_state';
END
$$;

CREATE TRIGGER event_is_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON writ.event
  FOR EACH STATEMENT EXECUTE FUNCTION writ.refuse_change_of_log();
CREATE TRIGGER event_request_is_insert_only BEFORE UPDATE OR DELETE OR TRUNCATE ON writ.event_request
  FOR EACH STATEMENT EXECUTE FUNCTION writ.refuse_change_of_log();
