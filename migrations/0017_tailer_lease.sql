-- Which replica publishes the log of a namespace to Redis, outside the log: a lease of its own, with a token that only
-- rises, by which Redis refuses a publisher that was replaced. Few rows, written often: pages with room for HOT.
CREATE TABLE writ.tailer_lease (
  namespace     text   COLLATE "C" NOT NULL,
  replica_id    text   COLLATE "C" NOT NULL,
  token         bigint NOT NULL,
  expires_at_us bigint NOT NULL,
  CONSTRAINT tailer_lease_pkey PRIMARY KEY (namespace)
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
