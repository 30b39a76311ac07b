import { installSchemaSql, plainSchemaName } from './schema-name.js';

/**
 * The SQL of the guard for a target's own Postgres (design: fencing; C7, C1b), for services in any language: one text
 * that can be applied again and again, in one transaction (`writ guard sql` prints it). It needs nothing but Postgres 13,
 * and no coordinator: with it an old token is refused even while the coordinator is down.
 *
 * **What is kept.** One mark per resource, and one per subtree: the highest token that opened it or wrote to it, with
 * the run, the action and the expiry beside it, for people who look at the data. What counts for a resource is the
 * highest of its own mark and the subtree marks of itself and of everything above it.
 *
 * **What must not happen.** Run A (older token) has passed the check and has not committed; run B (newer) opens, reads,
 * does not see A's change, and A commits after that. So whoever raises a mark must wait for every writer that was let
 * in by the mark as it was, and whoever writes must hold the marks it was let in by until it has committed.
 *
 * **Locks.** A row lock cannot do that alone: before the first mark there is no row, and a write to a leaf would have to
 * lock rows for each ancestor, which nobody ever opened. So there are two advisory locks per path, `own` and `subtree`,
 * held to the end of the transaction:
 * ```
 *                        own(R)       subtree(R and each ancestor)
 *   optimistic write     shared       shared
 *   leased write, open   exclusive    shared
 *   open of a subtree    -            exclusive on R, shared above
 * ```
 * Independent resources meet only in shared locks (C11). Locks are taken from the root down, `own` last, so that two
 * calls never wait for each other; several calls in one transaction should come in the order of their resources.
 *
 * **Names.** The functions that decide look up nothing but what Postgres brings, whatever the search_path of the session:
 * else whoever may create a function or an operator in a schema that the service looks in could put one that fits better
 * in place of a comparison here, and have it run as the service.
 *
 * **Isolation.** The marks are read by a statement that begins after the locks are held. That is what READ COMMITTED
 * gives; under REPEATABLE READ or SERIALIZABLE the statement would read an older snapshot, so both are refused.
 */
export function guardSchemaSql(schema = 'writ_guard'): string {
  plainSchemaName(schema, "the guard's schema");
  return [installSchemaSql(schema, 'guard'), tables(schema), paths(schema), locking(schema), decisions(schema)].join(
    '\n',
  );
}

/** SQLSTATE of a refusal; its DETAIL is the reason. */
export const REFUSED_SQLSTATE = 'WR001';

function tables(schema: string): string {
  return `
CREATE TABLE IF NOT EXISTS ${schema}.mark (
  resource   text COLLATE "C" NOT NULL,
  scope      text NOT NULL CHECK (scope IN ('exact', 'subtree')),
  token      bigint NOT NULL CHECK (token > 0),
  -- For people who look at the data (C1b). Nothing is decided by them.
  run_id     text NOT NULL,
  action     text NOT NULL,
  expires_at timestamptz,
  raised_at  timestamptz NOT NULL,
  PRIMARY KEY (resource, scope)
) WITH (fillfactor = 70);
COMMENT ON TABLE ${schema}.mark IS
  'Writ: the highest fencing token that opened or wrote a resource, and who holds it. Changed only by open() and admit().';`;
}

/** What shows nothing in a text: separators, zero-width and direction-changing characters, annotation anchors. */
const UNSEEN =
  '[\\u0080-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e' +
  '\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]';

/** Spaces beyond ASCII, whatever the locale of the database takes for one. */
const WIDE_SPACE = '[\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]';

function paths(schema: string): string {
  return `
-- Whether a text is the path of a resource in normal form. Two spellings of one thing would be two marks, of which a
-- stale token needs only the one that nobody raised.
CREATE OR REPLACE FUNCTION ${schema}.is_resource(resource text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT AS $writ$
DECLARE
  segments text[] := string_to_array(resource, '/');
BEGIN
  IF resource = '' OR octet_length(resource) > 1024 OR cardinality(segments) > 32 OR segments && ARRAY['', '.', '..']
    OR resource ~ '[\\u0001-\\u001f\\u007f]' OR ('/' || resource || '/') ~ '/\\s|\\s/' THEN
    RETURN false;
  END IF;
  IF octet_length(resource) = char_length(resource) OR getdatabaseencoding() <> 'UTF8' THEN
    RETURN true;
  END IF;
  RETURN resource IS NFC NORMALIZED AND resource !~ '${UNSEEN}'
    AND ('/' || resource || '/') !~ '/${WIDE_SPACE}|${WIDE_SPACE}/';
END $writ$;

-- The paths from the root down to the resource itself.
CREATE OR REPLACE FUNCTION ${schema}.lineage(resource text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT AS $writ$
DECLARE
  segments text[] := string_to_array(resource, '/');
BEGIN
  IF NOT ${schema}.is_resource(resource) THEN
    RAISE EXCEPTION 'not a resource path: %', quote_literal(left(resource, 200)) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN ARRAY(
    SELECT array_to_string(segments[1:depth], '/') FROM generate_series(1, cardinality(segments)) AS depth ORDER BY depth
  );
END $writ$;`;
}

function locking(schema: string): string {
  return `
-- Takes the locks of the table above and returns the highest mark that counts for the resource; 0: none.
CREATE OR REPLACE FUNCTION ${schema}.lock_and_read(resource text, scope text, alone boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $writ$
DECLARE
  above text[] := ${schema}.lineage(resource);
  path text;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'the guard needs READ COMMITTED: under % it would read marks as they were before it locked them',
      upper(current_setting('transaction_isolation')) USING ERRCODE = 'feature_not_supported';
  END IF;
  FOREACH path IN ARRAY above LOOP
    IF scope = 'subtree' AND path = resource THEN
      PERFORM pg_advisory_xact_lock(hashtextextended('writ-guard:${schema}:subtree:' || path, 0));
    ELSE
      PERFORM pg_advisory_xact_lock_shared(hashtextextended('writ-guard:${schema}:subtree:' || path, 0));
    END IF;
  END LOOP;
  IF scope = 'exact' AND alone THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('writ-guard:${schema}:own:' || resource, 0));
  ELSIF scope = 'exact' THEN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('writ-guard:${schema}:own:' || resource, 0));
  END IF;
  -- A statement of its own: its snapshot is taken now, with the locks held.
  RETURN coalesce((
    SELECT max(m.token) FROM ${schema}.mark AS m
    WHERE (m.scope = 'subtree' AND m.resource = ANY (above))
       OR (m.scope = 'exact' AND m.resource = lock_and_read.resource AND lock_and_read.scope = 'exact')), 0);
END $writ$;

-- Raises the mark; the caller holds its lock. An unchanged row is left alone, or each write would leave a dead row.
CREATE OR REPLACE FUNCTION ${schema}.raise_mark(
  resource text, scope text, token bigint, run text, action text, expires_at timestamptz) RETURNS void
LANGUAGE sql VOLATILE AS $writ$
  INSERT INTO ${schema}.mark AS m (resource, scope, token, run_id, action, expires_at, raised_at)
  VALUES ($1, $2, $3, coalesce($4, ''), coalesce($5, ''), $6, clock_timestamp())
  ON CONFLICT (resource, scope) DO UPDATE
    SET token = excluded.token, run_id = excluded.run_id, action = excluded.action,
        -- One holder may leave it out in a later call; what another left behind says nothing about this one.
        expires_at = CASE WHEN m.token = excluded.token THEN coalesce(excluded.expires_at, m.expires_at) ELSE excluded.expires_at END,
        raised_at = CASE WHEN m.token = excluded.token THEN m.raised_at ELSE excluded.raised_at END
    WHERE m.token < excluded.token
       OR (m.token = excluded.token AND (m.run_id, m.action, m.expires_at) IS DISTINCT FROM
           (excluded.run_id, excluded.action, coalesce(excluded.expires_at, m.expires_at)))
$writ$;`;
}

function decisions(schema: string): string {
  return `
-- Why a token is refused; NULL: it is not. Tokens follow the clock (microseconds), so one far in the future was made up,
-- and would lock everybody else out. The hour allows for the target's clock.
CREATE OR REPLACE FUNCTION ${schema}.verdict(token bigint, mark bigint) RETURNS text
LANGUAGE sql VOLATILE AS $writ$
  SELECT CASE
    WHEN $1 IS NULL OR $1 <= 0 THEN 'no_token'
    WHEN $2 IS NULL THEN 'no_mark'
    WHEN $1 > (extract(epoch FROM clock_timestamp()) + 3600) * 1000000 THEN 'future_token'
    WHEN $1 < $2 THEN 'stale_token'
  END
$writ$;

-- Raises the mark of a resource or subtree before its new holder reads it: what an old holder still has under way is
-- committed before this returns, or never. Returns the reason of a refusal, or NULL.
CREATE OR REPLACE FUNCTION ${schema}.try_open(
  resource text, scope text, token bigint, run text, action text, expires_at timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $writ$
DECLARE
  reason text;
BEGIN
  IF resource IS NULL OR scope IS NULL OR scope NOT IN ('exact', 'subtree') THEN
    RAISE EXCEPTION 'open needs a resource, and exact or subtree' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  reason := ${schema}.verdict(token, ${schema}.lock_and_read(resource, scope, true));
  IF reason IS NULL THEN
    PERFORM ${schema}.raise_mark(resource, scope, token, run, action, expires_at);
  END IF;
  RETURN reason;
END $writ$;

-- Lets a write in, in the transaction of the write, or returns the reason of the refusal. A leased write (exclusive)
-- raises the mark. An optimistic one never does; its version condition is the caller's own WHERE version = observed.
CREATE OR REPLACE FUNCTION ${schema}.try_admit(
  resource text, token bigint, exclusive boolean, run text, action text, expires_at timestamptz) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $writ$
DECLARE
  reason text;
BEGIN
  IF resource IS NULL OR exclusive IS NULL THEN
    RAISE EXCEPTION 'admit needs a resource, and whether the write is leased' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  reason := ${schema}.verdict(token, ${schema}.lock_and_read(resource, 'exact', exclusive));
  IF reason IS NULL AND exclusive THEN
    PERFORM ${schema}.raise_mark(resource, 'exact', token, run, action, expires_at);
  END IF;
  RETURN reason;
END $writ$;

-- The message names the resource and the reason, never the mark: a refused caller must not learn a current token.
CREATE OR REPLACE FUNCTION ${schema}.refuse(resource text, reason text) RETURNS void
LANGUAGE plpgsql VOLATILE AS $writ$
BEGIN
  IF reason IS NOT NULL THEN
    RAISE EXCEPTION 'the guard refuses the fencing token for %: %', resource, reason
      USING ERRCODE = '${REFUSED_SQLSTATE}', DETAIL = reason;
  END IF;
END $writ$;

-- As above, but a refusal is an error, which also keeps the transaction from committing: use these.
CREATE OR REPLACE FUNCTION ${schema}.open(
  resource text, scope text, token bigint, run text, action text, expires_at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $writ$
BEGIN
  PERFORM ${schema}.refuse(resource, ${schema}.try_open(resource, scope, token, run, action, expires_at));
END $writ$;

CREATE OR REPLACE FUNCTION ${schema}.admit(
  resource text, token bigint, exclusive boolean,
  run text DEFAULT NULL, action text DEFAULT NULL, expires_at timestamptz DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE AS $writ$
BEGIN
  PERFORM ${schema}.refuse(resource, ${schema}.try_admit(resource, token, exclusive, run, action, expires_at));
END $writ$;`;
}
