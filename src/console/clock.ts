import { useEffect, useState } from 'preact/hooks';
import { createStore, useStore } from './store.js';

/**
 * The database's clock decides when a lease ends (P11), and the browser's may be wrong by hours. Answers tell the
 * database's time; between them the monotonic clock goes on.
 */
let databaseMs = Date.now();
let learnedAt = performance.now();
let isExact = false;
const GOOD_ENOUGH_MS = 250;

/** What the database's clock shows now, in milliseconds since 1970, as far as it is known. */
export const databaseNow = (): number => databaseMs + (performance.now() - learnedAt);

/** A moment of the database's clock that was read between the sending of a request and now. */
export function learnDatabaseTime(ms: number): void {
  if (isExact && Math.abs(ms - databaseNow()) < GOOD_ENOUGH_MS) return;
  databaseMs = ms;
  learnedAt = performance.now();
  isExact = true;
  // Countdowns are right at once, not at the next tick.
  seconds.set(databaseNow());
}

/** The coordinator's clock, in whole seconds: better than the browser's, until the database's own is known. */
export function learnServerDate(date: string | null): void {
  const ms = date === null ? Number.NaN : Date.parse(date);
  if (isExact || Number.isNaN(ms)) return;
  if (Math.abs(ms - databaseNow()) < 1_500) return;
  databaseMs = ms;
  learnedAt = performance.now();
}

const TICK_MS = 1_000;
const seconds = createStore(databaseNow());
let ticking = 0;
let ticker = 0;

/** The database's time, anew each second: one timer for the whole page, and none while nobody looks. */
export function useSecond(): number {
  useEffect(() => {
    if (ticking++ === 0) ticker = window.setInterval(() => seconds.set(databaseNow()), TICK_MS);
    return () => {
      if (--ticking === 0) window.clearInterval(ticker);
    };
  }, []);
  return useStore(seconds);
}

/** Calls while the page is seen, not more often than given. */
export function useInterval(call: () => void, everyMs: number | null): void {
  useEffect(() => {
    if (everyMs === null) return;
    const timer = window.setInterval(() => {
      if (!document.hidden) call();
    }, everyMs);
    return () => window.clearInterval(timer);
  }, [call, everyMs]);
}

/** The value, once it has rested for so long. */
export function useRested<T>(value: T, restMs: number): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(() => value), restMs);
    return () => window.clearTimeout(timer);
  }, [value, restMs]);
  return rested;
}
