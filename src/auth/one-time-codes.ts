import { randomBytes } from 'node:crypto';
import { monotonicMicros } from '../platform/clock.js';
import { isSameSecret } from './same-secret.js';

/** From its issue, on the process's own clock. */
export const CODE_LIFE_MICROS = 15 * 60e6;

/** A code that signs somebody in once, kept in memory only. There is one at a time: a new one takes the place of the last. */
export class OneTimeCodes {
  readonly #now: () => number;
  #issued: { readonly code: string; readonly until: number } | null = null;

  /** `now`: microseconds of a clock that never goes back. */
  constructor(now: () => number = monotonicMicros) {
    this.#now = now;
  }

  /** A new code with 256 random bits. */
  issue(): string {
    const code = randomBytes(32).toString('base64url');
    this.#issued = { code, until: this.#now() + CODE_LIFE_MICROS };
    return code;
  }

  /** Whether the code counts; with that it is used up. */
  redeem(code: string): boolean {
    const issued = this.#issued;
    if (issued === null || !isSameSecret(issued.code, code)) return false;
    this.#issued = null;
    return this.#now() < issued.until;
  }
}
