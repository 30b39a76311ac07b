-- Runs as part of another one, within the ceiling of their principal (R1), and whose person is known for certain (I2).
-- Runs that were there before are nobody's part, and nobody verified whom they name.

ALTER TABLE writ.run
  ADD COLUMN initiator_verified boolean NOT NULL DEFAULT false,
  ADD COLUMN parent_run_id      text    COLLATE "C" NOT NULL DEFAULT '',
  ADD COLUMN max_ttl_us         bigint  CHECK (max_ttl_us > 0);
