-- What replicas have signed of each log on schedule, and where they sent it (A2). Not what a log is verified by: that is what
-- was kept out of reach of whoever can write here. An identity numbers them, since two replicas may sign in one moment.
CREATE TABLE writ.signed_checkpoint (
  namespace  text   COLLATE "C" NOT NULL,
  number     bigint GENERATED ALWAYS AS IDENTITY,
  revision   bigint NOT NULL,
  hash       bytea  NOT NULL CHECK (octet_length(hash) = 32),
  time_us    bigint NOT NULL,
  signature  bytea  NOT NULL CHECK (octet_length(signature) = 64),
  key_id     text   COLLATE "C" NOT NULL,
  public_key text   COLLATE "C" NOT NULL,
  sent_to    text   COLLATE "C" NOT NULL,
  CONSTRAINT signed_checkpoint_pkey PRIMARY KEY (namespace, number)
);
