import type { Micros } from '../domain/time.js';
import type { Gate } from '../storage/store.js';

/** At most this many statements on their way at once; more readers join the next unsent one. */
const MAX_IN_FLIGHT = 2;

/** Readers that are answered in one turn of the event loop. */
const ANSWERED_PER_TURN = 8;

/** What a statement read, and when it was sent, by the monotonic clock. */
export interface GateRead {
  readonly gate: Gate;
  readonly sentAt: Micros;
}

interface Reader {
  readonly resolve: (read: GateRead) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The read index: readers that come while statements are on their way join one that is not yet sent.
 * One statement, one clock value, one round trip for any number of checks (P3).
 */
export class ReadIndex {
  private waiting: Reader[] = [];
  private inFlight = 0;
  private scheduled = false;

  constructor(
    private readonly readGate: () => Promise<Gate>,
    private readonly onRead: (waiting: number, duration: Micros) => void,
    private readonly monotonicNow: () => Micros,
  ) {}

  /** A gate that was read by a statement sent after this call. */
  next(): Promise<GateRead> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject });
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.scheduled || this.inFlight >= MAX_IN_FLIGHT || this.waiting.length === 0) return;
    this.scheduled = true;
    // Readers of the same turn of the event loop share one statement.
    setImmediate(() => {
      this.scheduled = false;
      void this.send();
    });
  }

  private async send(): Promise<void> {
    if (this.inFlight >= MAX_IN_FLIGHT || this.waiting.length === 0) return;
    const readers = this.waiting;
    this.waiting = [];
    this.inFlight += 1;
    const sentAt = this.monotonicNow();
    try {
      const gate = await this.readGate();
      this.onRead(readers.length, this.monotonicNow() - sentAt);
      answerSome(readers, { gate, sentAt });
    } catch (error) {
      for (const reader of readers) reader.reject(error);
    } finally {
      this.inFlight -= 1;
      this.schedule();
    }
  }
}

/**
 * In portions: while one is decided, the callers of the one before take their answers and send their next calls. Answered
 * all at once, callers and coordinator would work in turns, each waiting for the other.
 */
function answerSome(readers: readonly Reader[], read: GateRead, from = 0): void {
  const end = Math.min(readers.length, from + ANSWERED_PER_TURN);
  for (let index = from; index < end; index += 1) readers[index]?.resolve(read);
  if (end < readers.length) setImmediate(() => answerSome(readers, read, end));
}
