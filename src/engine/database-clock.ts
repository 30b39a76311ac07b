import type { Micros } from '../domain/time.js';

/**
 * A lower bound of the database clock: its last reading plus the monotonic time since that reading was
 * received (P11). The reading was taken before it was received, so the real clock is later, unless it
 * was set back: then the append's own proof fails and a new reading replaces this one.
 */
export class DatabaseClock {
  private reading: Micros = 0;
  private receivedAt: Micros = 0;

  constructor(private readonly monotonicNow: () => Micros) {}

  /** Takes a reading that a statement returned. */
  observe(reading: Micros): void {
    this.reading = reading;
    this.receivedAt = this.monotonicNow();
  }

  /** Not after the database clock now. */
  lowerBound(): Micros {
    return this.reading + Math.floor(this.monotonicNow() - this.receivedAt);
  }
}
