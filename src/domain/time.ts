/** A moment on the database clock, or a length of time: integer microseconds, exact below 2^53. */
export type Micros = number;

export const SECOND: Micros = 1_000_000;
export const MILLISECOND: Micros = 1_000;
