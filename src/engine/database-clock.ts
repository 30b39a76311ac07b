import { MILLISECOND, type Micros } from '../domain/time.js';

/** An answer that was longer on its way than this tells less of the clock than was known before. */
const HELD_UP: Micros = 100 * MILLISECOND;

/**
 * A lower bound of the database clock: its last reading plus the monotonic time since that reading was
 * received (P11). The reading was taken before it was received, so the real clock is later, unless it
 * was set back: then the append's own proof fails and a new reading replaces this one.
 */
export class DatabaseClock {
  private reading: Micros = 0;
  private receivedAt: Micros = 0;

  constructor(private readonly monotonicNow: () => Micros) {}

  /**
   * Takes a reading that a statement returned. One that was held up after it had read, by its commit or by a pause of this
   * process, does not take the clock back: else what is granted next would be as much shorter. How late the clock can be
   * by now is told by when the statement was sent.
   */
  observe(reading: Micros, sentAt: Micros = this.monotonicNow()): void {
    const took = Math.floor(this.monotonicNow() - sentAt);
    const known = took > HELD_UP ? Math.min(this.lowerBound(), reading + took) : reading;
    this.reading = Math.max(reading, known);
    this.receivedAt = this.monotonicNow();
  }

  /** Not after the database clock now. */
  lowerBound(): Micros {
    return this.reading + Math.floor(this.monotonicNow() - this.receivedAt);
  }
}
