import { HEAD, LOCK_CLASS, SERVER_COLUMNS } from './gate.js';
import { type Statement, statement } from './statement.js';

/**
 * The append: everything a batch writes, in one autocommitted statement (design: the engine).
 *
 * The statement reads what the batch was decided on in its `gate`, exactly one row, and inserts only when all of it
 * still holds. `gate` is MATERIALIZED so that the clock is read once: a test of the clock in the WHERE of the INSERT
 * runs per row, and was observed to let part of a batch in. The events go in by a plain INSERT, never ON CONFLICT DO
 * NOTHING: of two appends that decided on the same head one commits and the other fails on the primary key (23505), as
 * a whole. Since revision n+1 needs n to be visible, the log has no gaps.
 *
 * The projections ask for the number of events that went in. That makes them all or nothing, and it orders the
 * statement: the events come first, so an append that lost has touched no other row.
 *
 * A batch has rows for few of the tables; a part that has none is left out, as planning and starting an INSERT into
 * each table for nothing would cost more than the usual batch.
 *
 * Rows of what every grant writes travel as an array of a composite type per table (see row-literals.ts), those of what is
 * written seldom as one JSON array per table. The bodies of events are most of the bytes, and full of what would have to
 * be escaped: they travel as lines, since canonical JSON has no line break in it.
 */

/** Which optional parts a batch needs: the key of its statement. */
export type Part = keyof typeof PARTS | 'known';

const GATE = (checksKeys: boolean): string => `
WITH known AS MATERIALIZED (${checksKeys ? KNOWN_KEYS : NO_KEYS}
), server AS MATERIALIZED (
  SELECT this_server.*,
    -- As in READ_GATE: the control file is read only of a postmaster that the store does not know.
    CASE WHEN this_server.postmaster_start_us = $known_postmaster_start_us::bigint THEN $known_system_identifier::text
         ELSE (SELECT c.system_identifier::text FROM pg_control_system() AS c) END AS system_identifier,
    -- Our own exclusive lock would let us in, but not past others that wait for theirs: the queue is asked first.
    CASE WHEN $exclusive::boolean THEN true
         ELSE pg_try_advisory_xact_lock_shared(${LOCK_CLASS}, $lock_key::integer) END AS is_free
  FROM (SELECT ${SERVER_COLUMNS} OFFSET 0) AS this_server
), seen AS MATERIALIZED (
  SELECT server.*, head.*,
    server.durable AND NOT server.in_recovery AND ($any_identity::boolean OR (
      server.system_identifier = $system_identifier::text
      AND server.timeline = $timeline::bigint
      AND server.database_oid = $database_oid::bigint
      AND server.event_table_oid = $event_table_oid::bigint
      AND server.postmaster_start_us = $postmaster_start_us::bigint)) AS identity_ok,
    head.head_revision IS NOT DISTINCT FROM $head_revision::bigint
      AND head.head_hash IS NOT DISTINCT FROM $head_hash::bytea AS head_ok,
    NOT EXISTS (SELECT FROM known) AS keys_ok,
    ($past_us::bigint IS NULL OR $past_us <= server.now_us)
      AND ($future_us::bigint IS NULL OR $future_us > server.now_us) AS time_ok
  FROM server LEFT JOIN (${HEAD}) AS head ON true
), gate AS MATERIALIZED (
  SELECT seen.*, identity_ok AND is_free AND head_ok AND keys_ok AND time_ok AS ok FROM seen
), appended AS (
  INSERT INTO writ.event (namespace, revision, time_us, batch_id, kind, body_version, actor, run_id, lease_id,
    resources, request_ids, body, prev_hash, hash)
  SELECT $namespace, e.revision, e.time_us, e.batch_id, e.kind, e.body_version, e.actor, e.run_id, e.lease_id,
    e.resources, e.request_ids, e.body, e.prev_hash, e.hash
  FROM gate, ROWS FROM (
    unnest($events::writ.event_row[]),
    unnest(string_to_array($bodies::text, chr(10)))
  ) AS e (revision, time_us, batch_id, kind, body_version, actor, run_id, lease_id, resources, request_ids, prev_hash,
    hash, body)
  WHERE gate.ok
  ORDER BY e.revision
  RETURNING 1
)`;

/** Keys that were decided as never used before; any row proves the decision wrong (P6). */
const KNOWN_KEYS = `
  SELECT b.scope, b.key, b.use, b.fingerprint, b.run_id, b.lease_id, b.bound_at_us, b.stopped, b.effective_at_us
  FROM unnest($new_keys::writ.key_name[]) AS n
  CROSS JOIN LATERAL (
    SELECT * FROM writ.key_binding AS k
    WHERE k.namespace = $namespace AND k.scope = n.scope AND k.key = n.key LIMIT 1) AS b`;

const NO_KEYS = `
  SELECT 1 WHERE false`;

const WENT_IN = '(SELECT count(*) FROM appended) > 0';

/**
 * One upsert per table. ON CONFLICT DO UPDATE refuses a second row for one key (21000), so that a batch with two final
 * rows fails instead of keeping either.
 */
const PARTS = {
  leases: `
leases AS (
  INSERT INTO writ.lease AS old (namespace, lease_id, run_id, state, generation, requested_ttl_us, ttl_us, max_ttl_us,
    created_at_us, granted_at_us, expires_at_us, max_expires_at_us, progress_window_us, progress_marker, progress_at_us,
    claim_by_us, queued_at, waits_until_us, attached_until_us, attachment, attached, end_reason, ended_at_us,
    end_refusal, credentials_until_us, lock_delay_until_us, lock_delayed, delegated_from)
  SELECT $namespace, l.* FROM unnest($leases::writ.lease_row[]) AS l
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, lease_id) DO UPDATE SET
    run_id = excluded.run_id, state = excluded.state, generation = excluded.generation,
    requested_ttl_us = excluded.requested_ttl_us, ttl_us = excluded.ttl_us, max_ttl_us = excluded.max_ttl_us,
    created_at_us = excluded.created_at_us, granted_at_us = excluded.granted_at_us,
    expires_at_us = excluded.expires_at_us, max_expires_at_us = excluded.max_expires_at_us,
    progress_window_us = excluded.progress_window_us, progress_marker = excluded.progress_marker,
    progress_at_us = excluded.progress_at_us, claim_by_us = excluded.claim_by_us, queued_at = excluded.queued_at,
    waits_until_us = excluded.waits_until_us, attached_until_us = excluded.attached_until_us,
    attachment = excluded.attachment, attached = excluded.attached, end_reason = excluded.end_reason,
    ended_at_us = excluded.ended_at_us, end_refusal = excluded.end_refusal,
    credentials_until_us = excluded.credentials_until_us, lock_delay_until_us = excluded.lock_delay_until_us,
    lock_delayed = excluded.lock_delayed, delegated_from = excluded.delegated_from
)`,
  writeSets: `
write_sets AS (
  INSERT INTO writ.lease_write_set (namespace, lease_id, idempotency_key, purpose, request, entries, rule_locks,
    take_over)
  SELECT $namespace, w.* FROM unnest($write_sets::writ.lease_write_set_row[]) AS w
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, lease_id) DO UPDATE SET
    idempotency_key = excluded.idempotency_key, purpose = excluded.purpose, request = excluded.request,
    entries = excluded.entries, rule_locks = excluded.rule_locks, take_over = excluded.take_over
)`,
  keys: `
keys AS (
  INSERT INTO writ.key_binding (namespace, scope, key, use, fingerprint, run_id, lease_id, bound_at_us, stopped,
    effective_at_us)
  SELECT $namespace, k.* FROM unnest($keys::writ.key_binding_row[]) AS k
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, scope, key) DO UPDATE SET
    use = excluded.use, fingerprint = excluded.fingerprint, run_id = excluded.run_id, lease_id = excluded.lease_id,
    bound_at_us = excluded.bound_at_us, stopped = excluded.stopped, effective_at_us = excluded.effective_at_us
)`,
  runs: `
runs AS (
  INSERT INTO writ.run (namespace, run_id, idempotency_key, state, state_reason, block_cause, purpose, goal_revision,
    initiator, principal, allowed, escalation, authority_ends_at_us, created_at_us, ended_at_us, initiator_verified,
    parent_run_id, max_ttl_us, ends_as)
  SELECT $namespace, r.* FROM json_to_recordset($runs::json) AS r (run_id text, idempotency_key text,
    state writ.run_state, state_reason text, block_cause text, purpose text, goal_revision text, initiator text,
    principal text, allowed text, escalation text, authority_ends_at_us bigint, created_at_us bigint,
    ended_at_us bigint, initiator_verified boolean, parent_run_id text, max_ttl_us bigint, ends_as writ.run_state)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, run_id) DO UPDATE SET
    idempotency_key = excluded.idempotency_key, state = excluded.state, state_reason = excluded.state_reason,
    block_cause = excluded.block_cause, purpose = excluded.purpose, goal_revision = excluded.goal_revision,
    initiator = excluded.initiator, principal = excluded.principal, allowed = excluded.allowed,
    escalation = excluded.escalation, authority_ends_at_us = excluded.authority_ends_at_us,
    created_at_us = excluded.created_at_us, ended_at_us = excluded.ended_at_us,
    initiator_verified = excluded.initiator_verified, parent_run_id = excluded.parent_run_id,
    max_ttl_us = excluded.max_ttl_us, ends_as = excluded.ends_as
)`,
  admissions: `
admissions AS (
  INSERT INTO writ.admission (namespace, admission_id, lease_id, run_id, resource, action, token, request_id,
    observed_version, target, admitted_at_us, in_doubt_since_us, unsure, outcome, known_at_us, known_by, settled,
    new_version)
  SELECT $namespace, a.* FROM json_to_recordset($admissions::json) AS a (admission_id text, lease_id text, run_id text,
    resource text, action text, token bigint, request_id text, observed_version text, target text,
    admitted_at_us bigint, in_doubt_since_us bigint, unsure boolean, outcome text, known_at_us bigint, known_by text,
    settled boolean, new_version text)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, admission_id) DO UPDATE SET
    in_doubt_since_us = excluded.in_doubt_since_us, unsure = excluded.unsure, outcome = excluded.outcome,
    known_at_us = excluded.known_at_us, known_by = excluded.known_by, settled = excluded.settled,
    new_version = excluded.new_version
)`,
  unmatched: `
unmatched AS (
  INSERT INTO writ.unmatched_resource (namespace, resource, times, last_seen_at_us)
  SELECT $namespace, u.* FROM json_to_recordset($unmatched::json) AS u (resource text, times bigint,
    last_seen_at_us bigint)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, resource) DO UPDATE SET times = excluded.times, last_seen_at_us = excluded.last_seen_at_us
)`,
  revocations: `
revocations AS (
  INSERT INTO writ.credential_revocation (namespace, subject, revoked_at_us, until_us)
  SELECT $namespace, r.* FROM json_to_recordset($revocations::json) AS r (subject text, revoked_at_us bigint,
    until_us bigint)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, subject) DO UPDATE SET revoked_at_us = excluded.revoked_at_us, until_us = excluded.until_us
)`,
  rehearsals: `
rehearsals AS (
  INSERT INTO writ.rehearsal (namespace, pattern, last, window_open)
  SELECT $namespace, r.* FROM json_to_recordset($rehearsals::json) AS r (pattern text, last text, window_open text)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, pattern) DO UPDATE SET last = excluded.last, window_open = excluded.window_open
)`,
  freezes: `
freezes AS (
  INSERT INTO writ.freeze (namespace, pattern, scope, denies_checks, reason, frozen_by, frozen_at_us, until_us,
    effective_at_us)
  SELECT $namespace, f.* FROM json_to_recordset($freezes::json) AS f (pattern text, scope text, denies_checks boolean,
    reason text, frozen_by text, frozen_at_us bigint, until_us bigint, effective_at_us bigint)
  WHERE ${WENT_IN}
  ON CONFLICT (namespace, pattern) DO UPDATE SET scope = excluded.scope, denies_checks = excluded.denies_checks,
    reason = excluded.reason, frozen_by = excluded.frozen_by, frozen_at_us = excluded.frozen_at_us,
    until_us = excluded.until_us, effective_at_us = excluded.effective_at_us
)`,
  // Of other patterns than those above: one statement cannot write a row and delete it.
  thawed: `
thawed AS (
  DELETE FROM writ.freeze AS f
  WHERE f.namespace = $namespace AND ${WENT_IN}
    AND f.pattern = ANY (ARRAY(SELECT json_array_elements_text($thawed::json)))
)`,
  // A version is put once: a plain INSERT, so that a second one of the same number fails.
  mapVersion: `
map_version AS (
  INSERT INTO writ.map_version (namespace, version, text, document, author, reason, created_at_us)
  SELECT $namespace, m.* FROM json_to_record($map_version::json) AS m (version bigint, text text, document text,
    author text, reason text, created_at_us bigint)
  WHERE ${WENT_IN}
)`,
  texts: `
texts AS (
  INSERT INTO writ.event_text (namespace, revision, digest, salt, text)
  SELECT $namespace, t.* FROM json_to_recordset($texts::json) AS t (revision bigint, digest bytea, salt bytea, text text)
  WHERE ${WENT_IN}
)`,
  requests: `
requests AS (
  INSERT INTO writ.event_request (namespace, request_id, revision)
  SELECT $namespace, q.* FROM json_to_recordset($requests::json) AS q (request_id text, revision bigint)
  WHERE ${WENT_IN}
)`,
} as const;

const PART_NAMES = Object.keys(PARTS) as (keyof typeof PARTS)[];

const statements = new Map<string, Statement>();

/** The statement for the parts that a batch has; few of the combinations ever occur. */
export function appendStatement(parts: ReadonlySet<Part>): Statement {
  const bits = ['known' as const, ...PART_NAMES].map((part) => (parts.has(part) ? '1' : '0')).join('');
  let made = statements.get(bits);
  if (made === undefined) {
    const upserts = PART_NAMES.filter((part) => parts.has(part)).map((part) => PARTS[part]);
    const answer = `
SELECT gate.*, (SELECT count(*) FROM appended) AS appended, (SELECT json_agg(known) FROM known) AS known FROM gate`;
    made = statement(`append_${bits}`, [GATE(parts.has('known')), ...upserts].join(',') + answer);
    statements.set(bits, made);
  }
  return made;
}
