import type { LeaseLostError } from './errors.js';

/** What happens to a lease while it is held, by the name of the event, with what listeners are given. */
export interface LeaseEvents {
  /** A renewal is overdue, failed or was refused; without one that comes through the lease is lost in `remainingMs`. */
  readonly jeopardy: { readonly remainingMs: number; readonly cause: Error };
  /** A renewal came through again. */
  readonly safe: undefined;
  /** It never comes back; the signal has fired. Who listens only afterwards is told at once. */
  readonly lost: LeaseLostError;
  /**
   * Another run waits for these resources of the lease. Nothing is taken away: finish, or reach a good place to stop, and
   * release. Told once for each resource, and again when it is wanted anew.
   */
  readonly asked_to_yield: { readonly resources: readonly string[] };
  /**
   * Another run was granted a write on what the lease only reads. What was concluded from it may not hold any more: read
   * it again, and let writes that rest on it check its version.
   */
  readonly input_changed: {
    readonly resource: string;
    /** When the last such write was granted: microseconds since 1970 on the database's clock. */
    readonly changedAtMicros: number;
  };
}

/** What `lease.on` can listen to. */
export type LeaseEventName = keyof LeaseEvents;
const NAMES: ReadonlySet<LeaseEventName> = new Set(['jeopardy', 'safe', 'lost', 'asked_to_yield', 'input_changed']);

/** Called with what LeaseEvents says of the event; one that throws makes a process warning, and nothing else. */
export type LeaseListener<E extends LeaseEventName> = (detail: LeaseEvents[E]) => void;

/** Listeners of one lease. A listener that throws is no reason to lose it: that is a process warning. */
export class LeaseEventHub {
  private readonly listeners = new Map<LeaseEventName, Set<(detail: never) => void>>();
  private lost: LeaseLostError | undefined;

  /** Returns how to stop listening. */
  on<E extends LeaseEventName>(event: E, listener: LeaseListener<E>): () => void {
    // Who listens for what there is not would learn of no loss.
    if (!NAMES.has(event))
      throw new TypeError(`no event of a lease: ${String(event)}; there are ${[...NAMES].join(', ')}`);
    if (typeof listener !== 'function') throw new TypeError(`a listener for ${event} must be a function`);
    const known = this.listeners.get(event) ?? new Set();
    this.listeners.set(event, known.add(listener));
    const { lost } = this;
    if (event === 'lost' && lost !== undefined)
      queueMicrotask(() => this.call(listener as LeaseListener<'lost'>, 'lost', lost));
    return () => known.delete(listener);
  }

  emit<E extends LeaseEventName>(event: E, detail: LeaseEvents[E]): void {
    if (event === 'lost') this.lost = detail as LeaseLostError;
    for (const listener of [...(this.listeners.get(event) ?? [])])
      this.call(listener as LeaseListener<E>, event, detail);
  }

  private call<E extends LeaseEventName>(listener: LeaseListener<E>, event: E, detail: LeaseEvents[E]): void {
    try {
      listener(detail);
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      process.emitWarning(`a listener for ${event} of a lease threw: ${text}`, 'WritWarning');
    }
  }
}
