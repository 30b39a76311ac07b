import type { Micros } from '../domain/time.js';
import type { Gate } from '../storage/store.js';
import { inTurns } from './in-turns.js';

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
      const read = { gate, sentAt };
      inTurns(readers.length, ANSWERED_PER_TURN, (index) => readers[index]?.resolve(read));
    } catch (error) {
      for (const reader of readers) reader.reject(error);
    } finally {
      this.inFlight -= 1;
      this.schedule();
    }
  }
}
