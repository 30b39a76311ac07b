-- What operators have frozen: nothing is granted there. A row is there for as long as the freeze is; few, seldom written.
CREATE TABLE writ.freeze (
  namespace       text COLLATE "C" NOT NULL,
  pattern         text COLLATE "C" NOT NULL CHECK (pattern <> ''),
  scope           text COLLATE "C" NOT NULL CHECK (scope IN ('exact', 'subtree')),
  denies_checks   boolean NOT NULL,
  reason          text NOT NULL,
  frozen_by       text COLLATE "C" NOT NULL,
  frozen_at_us    bigint NOT NULL,
  until_us        bigint CHECK (until_us > frozen_at_us),
  effective_at_us bigint NOT NULL CHECK (effective_at_us >= frozen_at_us),
  CONSTRAINT freeze_pkey PRIMARY KEY (namespace, pattern)
);

-- Of a lease that an operator's take-over made: whom it ended, and what it was granted in spite of. JSON; null: of any other.
ALTER TABLE writ.lease_write_set ADD COLUMN take_over text;
