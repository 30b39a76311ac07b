import pg from 'pg';
import { StoreError, type StoreErrorKind } from '../store.js';

/** Where the error came up: before anything was sent, in a statement that only reads, or in one that writes. */
export type Phase = 'connect' | 'read' | 'write';

/**
 * Losing an append is an ordinary outcome: somebody else took the revision (23505 on the event key), or the database
 * asks to try again (serialization failure, deadlock, lock timeout).
 */
export function isLostRace(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  switch (error.code) {
    case '23505':
      return error.schema === 'writ' && error.constraint === 'event_pkey';
    case '40001':
    case '40P01':
    case '55P03':
      return true;
    default:
      return false;
  }
}

/** The server, or the session, takes no writes: a standby, or default_transaction_read_only. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006';
}

/** What the caller is told; the driver's error stays the cause, and never carries the password. */
export function toStoreError(error: unknown, phase: Phase): StoreError {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof pg.DatabaseError) {
    const said = `${message} (${error.code ?? 'no code'}${error.constraint ? `, ${error.constraint}` : ''})${pooledHint(error)}`;
    return new StoreError(kindOfAnswer(error, phase), `the database answered: ${said}`, error);
  }
  if (error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError) {
    return new StoreError('bug', `a value that cannot be represented: ${message}`, error);
  }
  if (phase === 'write' && !wasNeverSent(message)) {
    return new StoreError('unknown_outcome', `the answer of the database was lost: ${message}`, error);
  }
  return new StoreError('unavailable', `the database cannot be reached: ${message}`, error);
}

/** A pooler in transaction mode let two statements of one client meet different servers, or one server two clients. */
export function isPooledPrepared(error: unknown): boolean {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof pg.DatabaseError && (cause.code === '42P05' || cause.code === '26000');
}

function pooledHint(error: pg.DatabaseError): string {
  return isPooledPrepared(error) ? '; behind a pooler in transaction mode WRIT_DATABASE_PREPARED must be off' : '';
}

/** For the `catch` of a promise. */
export function asStoreError(phase: Phase): (error: unknown) => never {
  return (error) => {
    throw toStoreError(error, phase);
  };
}

/** Postgres answered with an error; by SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html. */
function kindOfAnswer(error: pg.DatabaseError, phase: Phase): StoreErrorKind {
  const code = error.code ?? '';
  if (phase === 'connect') return 'unavailable';
  // FATAL ends the session. In a statement that writes it may come after the commit: a backend that is told to
  // terminate while it waits for a synchronous standby commits first (57P01), so only the log knows.
  const ends = error.severity === 'FATAL' || error.severity === 'PANIC' || /^(08|57P0|25P0[34])/.test(code);
  if (ends || code === '57014') return phase === 'write' ? 'unknown_outcome' : 'unavailable';
  switch (code.slice(0, 2)) {
    case '22': // data exception
    case '54': // program limit, such as a value too long for an index
      return 'bad_data';
    case '53': // insufficient resources, such as a full disk
    case '58': // system error, such as an I/O error
      return 'read_only';
    case '40': // transaction rollback
    case '55': // object in use, lock not available
      return 'unavailable';
    default:
      return isReadOnly(error) ? 'read_only' : 'bug';
  }
}

/** The driver refused the query by itself: the connection was known to be dead before anything went out. */
function wasNeverSent(message: string): boolean {
  return /not queryable|timeout exceeded when trying to connect|Cannot use a pool after calling end/.test(message);
}
