/** What is wrong with one field of a request. */
export interface Violation {
  /** Path of the field as the API names it, such as `entries[0].resource`. */
  readonly field: string;
  /** What is wrong and what would be accepted. */
  readonly description: string;
}

/** The class of a fault; transports map it to their own status. */
export type FaultClass =
  | 'invalid_argument'
  | 'not_found'
  | 'already_exists'
  | 'permission_denied'
  | 'unauthenticated'
  | 'failed_precondition'
  | 'aborted'
  | 'resource_exhausted'
  | 'unavailable'
  | 'unknown_outcome'
  | 'internal';

/**
 * The caller's request could not be decided as asked: bad input, an unknown id, a missing right, an
 * unreachable database. Expected negative outcomes are refusals, not faults.
 */
export class Fault extends Error {
  override readonly name = 'Fault';

  constructor(
    readonly faultClass: FaultClass,
    /** Stable code in upper case, such as `RUN_NOT_FOUND`. */
    readonly reason: string,
    message: string,
    readonly details: {
      readonly violations?: readonly Violation[];
      /** Facts a machine can act on; never secrets. */
      readonly metadata?: Readonly<Record<string, string>>;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
  }
}

/** Bad input, all violations at once. */
export function invalidArgument(violations: readonly Violation[]): Fault {
  const text = violations.map((v) => `${v.field}: ${v.description}`).join('; ');
  return new Fault('invalid_argument', 'INVALID_ARGUMENT', text, { violations });
}
