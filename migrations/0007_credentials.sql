-- Until when credentials of a lease are out: the last end of any that was issued.
ALTER TABLE writ.lease ADD COLUMN credentials_until_us bigint;

-- What was revoked, until the last credential it concerns is dead by itself. `subject` is jti:…, lease:… or run:….
CREATE TABLE writ.credential_revocation (
  namespace     text   COLLATE "C" NOT NULL,
  subject       text   COLLATE "C" NOT NULL CHECK (subject ~ '^(jti|lease|run):.'),
  revoked_at_us bigint NOT NULL,
  until_us      bigint NOT NULL CHECK (until_us >= revoked_at_us),
  CONSTRAINT credential_revocation_pkey PRIMARY KEY (namespace, subject)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- Few rows, short lives: those that still matter are loaded, those that do not are purged, both by this.
CREATE INDEX credential_revocation_until ON writ.credential_revocation (namespace, until_us);
