import { monotonicMicros } from './clock.js';

/** So many lines a second; counts what was left out. */
export class LineBudget {
  readonly #perSecond: number;
  #second = 0;
  #used = 0;
  #suppressed = 0;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  take(): boolean {
    const second = Math.floor(monotonicMicros() / 1e6);
    if (second !== this.#second) {
      this.#second = second;
      this.#used = 0;
    }
    if (this.#used < this.#perSecond) {
      this.#used += 1;
      return true;
    }
    this.#suppressed += 1;
    return false;
  }

  /** What was left out before this line. */
  suppressed(): { suppressed_lines?: number } {
    if (this.#suppressed === 0) return {};
    const count = this.#suppressed;
    this.#suppressed = 0;
    return { suppressed_lines: count };
  }
}
