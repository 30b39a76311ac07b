-- What is known of the rehearsals of each kind's target: the last result, and the window of a suite that plays now.
-- Few rows, seldom written: the parts are JSON, which only a replica reads.
CREATE TABLE writ.rehearsal (
  namespace   text COLLATE "C" NOT NULL,
  pattern     text COLLATE "C" NOT NULL CHECK (pattern <> ''),
  last        text,
  window_open text,
  CONSTRAINT rehearsal_pkey PRIMARY KEY (namespace, pattern)
);
