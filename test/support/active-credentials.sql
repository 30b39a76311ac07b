-- At most so many active credentials of a tenant (W3), whichever version a writer has read.
CREATE TABLE tenant (
  id          text PRIMARY KEY,
  max_active  integer NOT NULL CHECK (max_active > 0),
  closed      boolean NOT NULL DEFAULT false
);
CREATE TABLE credential (
  tenant  text NOT NULL REFERENCES tenant,
  name    text NOT NULL,
  active  boolean NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (tenant, name)
);

-- A version condition on one credential sees none of its siblings: two writers on current versions can pass the limit
-- together. So everyone who makes a credential active holds the tenant's row first, and counts while holding it. It runs
-- in the database, for every statement, so that no route, job or console can forget it.
CREATE FUNCTION check_active_credentials() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  allowed tenant%ROWTYPE;
BEGIN
  SELECT * INTO allowed FROM tenant WHERE id = NEW.tenant FOR UPDATE;
  -- The tenant may have been closed after the caller has read it.
  IF allowed.closed THEN
    RAISE EXCEPTION 'the tenant % is closed', NEW.tenant
      USING ERRCODE = 'check_violation', CONSTRAINT = 'tenant_open';
  END IF;
  IF (SELECT count(*) FROM credential WHERE tenant = NEW.tenant AND active AND name <> NEW.name) >= allowed.max_active THEN
    RAISE EXCEPTION 'the tenant % has % active credentials, which is all it may have', NEW.tenant, allowed.max_active
      USING ERRCODE = 'check_violation', CONSTRAINT = 'max_active_credentials';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER max_active_credentials BEFORE INSERT OR UPDATE ON credential
  FOR EACH ROW WHEN (NEW.active) EXECUTE FUNCTION check_active_credentials();
