/** A moment on the clocks of this process. */
export interface LocalMoment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function localMoment(): LocalMoment {
  return { monotonicMs: performance.now(), wallMs: Date.now() };
}

/** How much slower than the database's a clock here may run: twice what a clock is slewed by at most. */
const DRIFT = 0.001;

/**
 * How long ago the moment was, at most, in milliseconds. `performance.now()` stands still while a machine sleeps, and the
 * wall clock can be set back: the further one counts. A wall clock that is set ahead makes a view too old for a moment,
 * until the next mark, and never too young.
 */
export function elapsedAtMost({ monotonicMs, wallMs }: LocalMoment, now = performance.now()): number {
  return Math.max(now - monotonicMs, Date.now() - wallMs) * (1 + DRIFT);
}
