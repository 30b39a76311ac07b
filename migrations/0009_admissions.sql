-- Tracked writes: what checks let in, and what is known of it. A run that has ended is `stopping` while any of it is open.

ALTER TABLE writ.run ADD COLUMN ends_as writ.run_state;
ALTER TABLE writ.run ADD CONSTRAINT run_stopping CHECK (
  ends_as IS NULL OR (state = 'stopping' AND ends_as IN ('stopped', 'finished', 'failed', 'expired'))
);

CREATE TABLE writ.admission (
  namespace         text   COLLATE "C" NOT NULL,
  admission_id      text   COLLATE "C" NOT NULL,
  lease_id          text   COLLATE "C" NOT NULL,
  run_id            text   COLLATE "C" NOT NULL,
  resource          text   COLLATE "C" NOT NULL,
  action            text   COLLATE "C" NOT NULL,
  token             bigint NOT NULL,
  request_id        text   COLLATE "C" NOT NULL,
  observed_version  text,
  target            text   COLLATE "C" NOT NULL,
  admitted_at_us    bigint NOT NULL,
  in_doubt_since_us bigint CHECK (in_doubt_since_us >= admitted_at_us),
  unsure            boolean NOT NULL,
  outcome           text   COLLATE "C" CHECK (outcome IN ('succeeded', 'failed')),
  known_at_us       bigint,
  known_by          text   COLLATE "C",
  settled           boolean,
  new_version       text,
  CONSTRAINT admission_pkey PRIMARY KEY (namespace, admission_id),
  CONSTRAINT admission_known CHECK (num_nulls(outcome, known_at_us, known_by, settled) IN (0, 4))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- What a replica loads. Few rows: a write is open for as long as its target takes to report.
CREATE INDEX admission_open ON writ.admission (namespace, admitted_at_us, admission_id) WHERE outcome IS NULL;
-- A repeated report is found by its check; the purge takes them with their lease.
CREATE INDEX admission_check ON writ.admission (namespace, lease_id, request_id, admitted_at_us);
