-- One row per replica, outside the log: a replica whose last committed heartbeat is too old denies (fail-over and
-- restore). Few rows, written often: pages with room, so that every write is HOT.
CREATE TABLE writ.replica_heartbeat (
  replica_id text   COLLATE "C" NOT NULL,
  at_us      bigint NOT NULL,
  CONSTRAINT replica_heartbeat_pkey PRIMARY KEY (replica_id)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
