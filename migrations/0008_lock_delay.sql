-- Lock delay: what an early end of a lease with entries of local kinds keeps from other runs until nobody accepts its
-- credentials any more. It is a part of the lease's own row: written with its end, and once more when it is over.

-- Both with a constant default, so that no row is rewritten.
ALTER TABLE writ.lease
  ADD COLUMN lock_delay_until_us bigint,
  ADD COLUMN lock_delayed boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT lease_lock_delay CHECK (NOT lock_delayed OR (state = 'ended' AND lock_delay_until_us IS NOT NULL));

-- What a replica loads besides the live leases. Few rows, and no renewal changes what the index is about.
CREATE INDEX lease_lock_delayed ON writ.lease (namespace, lease_id) WHERE lock_delayed;
