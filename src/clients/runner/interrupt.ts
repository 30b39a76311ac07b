/** The process was told to stop. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';

  constructor(readonly signalName: NodeJS.Signals) {
    super(`interrupted by ${signalName}`);
  }
}

/** An AbortSignal for a process that is told to stop. */
export interface Interrupt {
  /** Aborts at the first SIGINT or SIGTERM, with an InterruptedError. */
  readonly signal: AbortSignal;
  /** Ends listening: the process ends by signals again, as it does by default. */
  dispose(): void;
}

/**
 * Turns the first SIGINT or SIGTERM into an abort, so that the work ends and its leases are given back; the second ends
 * the process as usual. Opt-in: a library that listened by itself would take the choice from its program.
 *
 * @example
 * const interrupt = interruptSignal();
 * try {
 *   await withWriteSet(writ, { runId, resources, signal: interrupt.signal }, work);
 * } finally {
 *   interrupt.dispose();
 * }
 */
export function interruptSignal(names: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']): Interrupt {
  const aborter = new AbortController();
  const dispose = () => {
    for (const name of names) process.off(name, listener);
  };
  const listener = (name: NodeJS.Signals) => {
    dispose();
    aborter.abort(new InterruptedError(name));
  };
  for (const name of names) process.on(name, listener);
  return { signal: aborter.signal, dispose };
}
