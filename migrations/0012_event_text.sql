-- Free text of events, which may be erased while the log stays as it is (A3): the body of an event holds the salted
-- hash of such a text in its place. Nothing is decided by what stands here.

CREATE TABLE writ.event_text (
  namespace text   COLLATE "C" NOT NULL,
  revision  bigint NOT NULL,
  -- SHA-256 over salt and text (UTF-8), as the body of the event has it.
  digest    bytea  NOT NULL CHECK (octet_length(digest) = 32),
  salt      bytea  NOT NULL CHECK (octet_length(salt) = 16),
  text      text   NOT NULL CHECK (text <> ''),
  CONSTRAINT event_text_pkey PRIMARY KEY (namespace, revision, digest)
);

