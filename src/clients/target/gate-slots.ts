/** Why a check was not made. */
export type NotMade = 'full' | 'too_late';

/**
 * How many fence checks are made at a time, and how many may wait for that: a slow coordinator must cost a service
 * neither its memory nor its patience. Waiting counts against the time a check may take.
 */
export class CheckSlots {
  private inFlight = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(
    private readonly maxInFlight: number,
    private readonly maxWaiting: number,
  ) {}

  /** Makes the check within the time that is left, `waited` or not for its turn, or says why it was not made. */
  async run<T>(timeoutMs: number, check: (leftMs: number, waited: boolean) => Promise<T>): Promise<T | NotMade> {
    const until = performance.now() + timeoutMs;
    const waited = this.inFlight >= this.maxInFlight;
    if (!waited) this.inFlight += 1;
    else if (this.waiting.length >= this.maxWaiting) return 'full';
    else if (!(await this.turn(timeoutMs))) return 'too_late';
    try {
      const leftMs = until - performance.now();
      return leftMs <= 0 ? 'too_late' : await check(leftMs, waited);
    } finally {
      this.next();
    }
  }

  /** True: a slot was handed over; false: the time was up. */
  private turn(timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.waiting.splice(this.waiting.indexOf(start), 1);
        resolve(false);
      }, timeoutMs);
      this.waiting.push(start);
    });
  }

  private next(): void {
    const first = this.waiting.shift();
    if (first === undefined) this.inFlight -= 1;
    else first();
  }
}
