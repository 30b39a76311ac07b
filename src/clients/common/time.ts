import type { Duration } from '../../gen/google/protobuf/duration.js';
import type { Timestamp } from '../../gen/google/protobuf/timestamp.js';

/** Times of the coordinator are integer microseconds of its database's clock; a Date would lose the last three digits. */

const MICROS_PER_SECOND = 1_000_000n;

/** Milliseconds of a duration; undefined when it is absent. */
export function durationMs(duration: Duration | undefined): number | undefined {
  return duration === undefined ? undefined : Number(duration.seconds) * 1_000 + duration.nanos / 1e6;
}

/** A duration of so many milliseconds, to the microsecond. Throws a RangeError, by the name of the option, for anything else. */
export function toDuration(ms: number, name = 'the length of time'): Duration {
  if (!Number.isFinite(ms)) throw new RangeError(`${name} must be a finite number of milliseconds, and is ${ms}`);
  const micros = BigInt(Math.round(ms * 1_000));
  return { seconds: micros / MICROS_PER_SECOND, nanos: Number(micros % MICROS_PER_SECOND) * 1_000 };
}

/** Microseconds since 1970; undefined when it is absent. */
export function timestampMicros(timestamp: Timestamp | undefined): number | undefined {
  if (timestamp === undefined) return undefined;
  return Number(timestamp.seconds * MICROS_PER_SECOND) + Math.floor(timestamp.nanos / 1_000);
}

/** A timestamp of so many microseconds since 1970. */
export function toTimestamp(micros: number): Timestamp {
  const whole = BigInt(Math.round(micros));
  const below = ((whole % MICROS_PER_SECOND) + MICROS_PER_SECOND) % MICROS_PER_SECOND;
  return { seconds: (whole - below) / MICROS_PER_SECOND, nanos: Number(below) * 1_000 };
}
