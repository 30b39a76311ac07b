/**
 * How `writ` ends; documented in docs/cli.md. `writ exec` ends with the code of the command it ran, so for it the codes
 * below tell only what went wrong before the command began, except `leaseLost`.
 */
export const EXIT = {
  ok: 0,
  /** Something failed that is nobody's refusal; the message says what. */
  failure: 1,
  /** The command line, a file or a request is wrong as it stands. */
  usage: 2,
  /** A typed refusal: held, outside the contract, another version, …; `map explain`: it cannot be told. */
  refused: 3,
  /** `check`: the write may not be accepted. */
  denied: 4,
  /** The coordinator, the database, or the target of a rehearsal, cannot be reached. */
  unavailable: 5,
  /** No such run, lease, event, … that the caller may see. */
  notFound: 6,
  /** `audit verify`, `doctor`, `map test`: looked, and found something wrong. */
  verification: 7,
  /** `exec`: the lease was lost while the command ran, and the command was ended (EX_TEMPFAIL). */
  leaseLost: 75,
  /** The token is not known, or its role does not do (EX_NOPERM). */
  permission: 77,
  /** `exec`: the command is there and cannot be executed, as shells say it. */
  notExecutable: 126,
  /** `exec`: there is no such command, as shells say it. */
  noCommand: 127,
} as const;

/** What `writ` itself, and a command ended by a signal, ends with: 128 and the signal's number, as shells say it. */
export function signalExit(signalNumber: number): number {
  return 128 + signalNumber;
}
