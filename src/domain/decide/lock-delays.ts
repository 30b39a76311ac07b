import { type Delayable, lockDelayUntil, WRITTEN_WITHIN } from '../lock-delay.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';

/**
 * Until when what ends now is kept from other runs; null: no delay is needed. The delay is counted from now, so the append
 * proves that it is written soon: on other replicas what ends must not be alive much longer (P3).
 */
export function provenDelay(decision: Decision, ending: Delayable, now: Micros): Micros | null {
  const until = lockDelayUntil(ending, now, decision.bounds);
  if (until !== null && until !== ending.expiresAt) decision.relyOnFuture(now + WRITTEN_WITHIN);
  return until;
}
