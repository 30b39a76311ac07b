-- What a call to amend a lease is told again when it is repeated by its key: from when on the lease was without what it
-- gave up. Null for all other uses of a key.
ALTER TABLE writ.key_binding ADD COLUMN effective_at_us bigint;

-- The lease of a parent run that a lease, or a waiting request, holds a part of. Empty: of none. With a constant default,
-- so that no row is rewritten.
ALTER TABLE writ.lease ADD COLUMN delegated_from text COLLATE "C" NOT NULL DEFAULT '';
