import { Fault } from '../domain/fault.js';
import { StoreError } from '../storage/store.js';

/** What callers are told of a failure below; the cause is kept for the log, never shown (P8). */
export function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  if (error instanceof StoreError) return fromStore(error);
  return new Fault('internal', 'INTERNAL', 'The coordinator failed; nothing is known to have changed.', {
    cause: error,
  });
}

function fromStore(error: StoreError): Fault {
  switch (error.kind) {
    case 'unavailable':
      return new Fault(
        'unavailable',
        'DATABASE_UNAVAILABLE',
        'The database cannot be reached; nothing was changed. Try again.',
        { cause: error },
      );
    case 'unknown_outcome':
      return new Fault(
        'unknown_outcome',
        'UNKNOWN_OUTCOME',
        "The database's answer was lost; the change may have happened. Repeat the call with the same idempotency key.",
        { cause: error },
      );
    case 'bad_data':
      return new Fault('invalid_argument', 'BAD_DATA', 'The database refused a value of the request.', {
        cause: error,
      });
    case 'read_only':
      return new Fault(
        'unavailable',
        'DATABASE_READ_ONLY',
        'The database cannot write: its disk is full or it is read-only. Nothing was changed.',
        { cause: error },
      );
    case 'bug':
      return new Fault('internal', 'INTERNAL', 'The coordinator failed; nothing is known to have changed.', {
        cause: error,
      });
  }
}

/** A short wait between attempts; never a condition of correctness. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
