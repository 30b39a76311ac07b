import { Fault } from '../../domain/fault.js';
import type { SigningKey, SigningKeyState } from '../../domain/signing-keys.js';
import type { Micros } from '../../domain/time.js';
import type { Session } from './connections.js';
import { toStoreError } from './errors.js';
import { statement } from './statement.js';

/**
 * The signing keys: a handful of rows that change now and then, shared by all replicas. Whoever changes them holds an
 * advisory lock of its transaction, so that replicas that start together make one set (F20).
 */

/** As namespaces' locks, `writ` in ASCII, but a class further: the first is taken by migrations, this is the second. */
const LOCK = '2003986805, 2';
/** Of those that are over, the newest so many stay as a record. */
const RETIRED_KEPT = 100;

interface KeyRow {
  readonly [column: string]: unknown;
  readonly now_us: Micros;
  readonly key_id: string | null;
  readonly state: SigningKeyState;
  readonly public_jwk: string;
  readonly sealed_private: string | null;
  readonly created_at_us: Micros;
  readonly activated_at_us: Micros | null;
  readonly replaced_at_us: Micros | null;
  readonly retired_at_us: Micros | null;
}

/** One row with the clock is expected even where there is no key, hence the LEFT JOIN. */
const READ = statement(
  'read_signing_keys',
  `
SELECT clock.now_us, k.key_id, k.state, k.public_jwk, k.sealed_private, k.created_at_us, k.activated_at_us,
  k.replaced_at_us, k.retired_at_us
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us OFFSET 0) AS clock
LEFT JOIN writ.signing_key AS k ON true ORDER BY k.created_at_us, k.key_id`,
);

export async function readSigningKeys(session: Session): Promise<{ now: Micros; keys: SigningKey[] }> {
  const rows = await session.query<KeyRow>(READ, {});
  return { now: rows[0]?.now_us ?? 0, keys: rows.filter((row) => row.key_id !== null).map(fromRow) };
}

function fromRow(row: KeyRow): SigningKey {
  return {
    keyId: row.key_id ?? '',
    state: row.state,
    publicJwk: row.public_jwk,
    sealedPrivate: row.sealed_private,
    createdAt: row.created_at_us,
    activatedAt: row.activated_at_us,
    replacedAt: row.replaced_at_us,
    retiredAt: row.retired_at_us,
  };
}

/** One key a statement: the places of `current` and `next` are left before they are taken. */
const WRITE = statement(
  'write_signing_key',
  `
INSERT INTO writ.signing_key (key_id, state, public_jwk, sealed_private, created_at_us, activated_at_us, replaced_at_us,
  retired_at_us)
VALUES ($key_id, $state::text::writ.signing_key_state, $public_jwk, $sealed_private, $created_at_us::bigint,
  $activated_at_us::bigint, $replaced_at_us::bigint, $retired_at_us::bigint)
ON CONFLICT (key_id) DO UPDATE SET state = excluded.state, sealed_private = excluded.sealed_private,
  activated_at_us = excluded.activated_at_us, replaced_at_us = excluded.replaced_at_us,
  retired_at_us = excluded.retired_at_us`,
);

const FORGET = statement(
  'forget_signing_keys',
  `
DELETE FROM writ.signing_key AS k WHERE k.key_id = ANY (ARRAY(
  SELECT r.key_id FROM writ.signing_key AS r WHERE r.state = 'retired'
  ORDER BY r.retired_at_us DESC, r.key_id OFFSET ${RETIRED_KEPT}))`,
);

const BEGIN = `
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = '5s';
SET LOCAL idle_in_transaction_session_timeout = '5s';
SELECT pg_advisory_xact_lock(${LOCK})`;

const LEAVING_FIRST: readonly SigningKeyState[] = ['retired', 'previous', 'current', 'next'];

export async function changeSigningKeys(
  session: Session,
  decide: (keys: readonly SigningKey[], now: Micros) => readonly SigningKey[],
): Promise<readonly SigningKey[]> {
  try {
    await session.command(BEGIN);
    // A statement of its own: it sees what was committed before the lock was granted.
    const { keys, now } = await readSigningKeys(session);
    const changed = decide(keys, now);
    const inOrder = changed.toSorted((a, b) => LEAVING_FIRST.indexOf(a.state) - LEAVING_FIRST.indexOf(b.state));
    for (const key of inOrder) await session.query(WRITE, toValues(key));
    if (changed.length > 0) await session.query(FORGET, {});
    await session.command('COMMIT');
    return changed;
  } catch (error) {
    await session.command('ROLLBACK').catch(() => undefined);
    // What `decide` refused passes unchanged.
    if (error instanceof Fault) throw error;
    throw toStoreError(error, 'write');
  }
}

function toValues(key: SigningKey) {
  return {
    key_id: key.keyId,
    state: key.state,
    public_jwk: key.publicJwk,
    sealed_private: key.sealedPrivate,
    created_at_us: key.createdAt,
    activated_at_us: key.activatedAt,
    replaced_at_us: key.replacedAt,
    retired_at_us: key.retiredAt,
  };
}
