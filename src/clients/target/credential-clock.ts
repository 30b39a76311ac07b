/**
 * How long a clock that was set back is not believed: every credential that was out at that moment is dead by then, with
 * tolerance and skew.
 */
const DISBELIEVED_FOR_MS = 120_000;

/** A moment, and when on the monotonic clock it was known. */
interface Known {
  readonly at: number;
  readonly monotonic: number;
}

/**
 * The time by which credentials are verified: never before anything that is known of it. That is what this machine's own
 * clock said, plus the monotonic time since, and the date that the key server gave. So a clock that is set back gives no
 * credential a second life, and one that is slow does not either where keys are fetched. A clock that is ahead is not
 * mended: it refuses too early, which harms nobody's data.
 */
export class CredentialClock {
  readonly #wall: () => number;
  readonly #monotonic: () => number;
  #own: Known;
  #told: Known | null = null;
  #setBackAt: number | null = null;

  /** Both clocks in milliseconds. */
  constructor(wall: () => number = Date.now, monotonic: () => number = () => performance.now()) {
    this.#wall = wall;
    this.#monotonic = monotonic;
    this.#own = { at: wall(), monotonic: monotonic() };
  }

  /** Milliseconds since 1970. */
  now(): number {
    const monotonic = this.#monotonic();
    const own = this.#ownTime(monotonic);
    return this.#told === null ? own : Math.max(own, carried(this.#told, monotonic));
  }

  /** The `Date` of an answer of the key server, and its `Age` where a cache gave it. Lies in the past by the way it came. */
  tell(date: string | null, age: string | null): void {
    const at = Date.parse(date ?? '') + (Number.parseInt(age ?? '', 10) || 0) * 1_000;
    if (Number.isFinite(at)) this.#told = { at, monotonic: this.#monotonic() };
  }

  #ownTime(monotonic: number): number {
    const wall = this.#wall();
    const expected = carried(this.#own, monotonic);
    if (wall < expected) {
      this.#setBackAt ??= monotonic;
      if (monotonic - this.#setBackAt < DISBELIEVED_FOR_MS) return expected;
    }
    this.#setBackAt = null;
    this.#own = { at: wall, monotonic };
    return wall;
  }
}

function carried({ at, monotonic }: Known, now: number): number {
  return at + (now - monotonic);
}
