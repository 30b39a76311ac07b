/** The embedded Postgres cannot run on this machine at all, whatever the data directory. */
export function cannotRun(reason: string, cause?: unknown): Error {
  const text = `the embedded Postgres cannot run here: ${reason}. `;
  return withCause(`${text}The alternative is a Postgres 15 to 18 of your own: set WRIT_DATABASE_URL.`, cause);
}

export function withCause(message: string, cause: unknown): Error {
  return cause === undefined ? new Error(message) : new Error(message, { cause });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether it is an error with one of these codes, be they of the operating system or SQLSTATEs. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && codes.includes(String((error as NodeJS.ErrnoException).code));
}

/** For `catch`: what is not there is undefined, everything else still fails. */
export function absent(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error;
}
