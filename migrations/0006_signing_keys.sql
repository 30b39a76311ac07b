-- The keys that sign credentials: one set for the installation, shared by its replicas. Outside the log: the private
-- part is here encrypted (a JWE under the key-encryption key, which no database has), and is destroyed with retirement.

CREATE TYPE writ.signing_key_state AS ENUM ('next', 'current', 'previous', 'retired');

CREATE TABLE writ.signing_key (
  -- RFC 7638 thumbprint of the public key: the `kid` of what it signs.
  key_id          text COLLATE "C" NOT NULL CHECK (key_id ~ '^[A-Za-z0-9_-]{43}$'),
  state           writ.signing_key_state NOT NULL,
  public_jwk      text   NOT NULL,
  sealed_private  text,
  created_at_us   bigint NOT NULL,
  activated_at_us bigint,
  replaced_at_us  bigint,
  retired_at_us   bigint,
  CONSTRAINT signing_key_pkey PRIMARY KEY (key_id),
  CONSTRAINT signing_key_sealed CHECK ((state = 'retired') = (sealed_private IS NULL)),
  CONSTRAINT signing_key_retired CHECK ((state = 'retired') = (retired_at_us IS NOT NULL)),
  CONSTRAINT signing_key_life CHECK (CASE state
    WHEN 'next' THEN activated_at_us IS NULL AND replaced_at_us IS NULL
    WHEN 'current' THEN activated_at_us >= created_at_us AND replaced_at_us IS NULL
    WHEN 'previous' THEN replaced_at_us >= activated_at_us
    ELSE true END)
);

-- One key signs, and one is known to be the next, whatever goes wrong.
CREATE UNIQUE INDEX signing_key_one_current ON writ.signing_key (state) WHERE state = 'current';
CREATE UNIQUE INDEX signing_key_one_next ON writ.signing_key (state) WHERE state = 'next';
