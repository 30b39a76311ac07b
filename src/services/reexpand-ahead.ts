import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Bounds } from '../domain/decide/decision.js';
import type { Reexpansion } from '../domain/decide/reexpansion.js';
import { Fault } from '../domain/fault.js';
import { underLockDelay } from '../domain/lease.js';
import type { State } from '../domain/state.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import { monotonicMicros } from '../platform/clock.js';

/** What is done between two turns of the event loop. */
const SLICE: Micros = 2 * MILLISECOND;
/** All slices of one change together. */
const TIME_LIMIT: Micros = 10 * SECOND;

/**
 * Expands every live lease by a new map before the append that puts it, in slices, so that checks and
 * grants go on. The append itself then meets only what was granted since.
 */
export async function reexpandAhead(state: State, reexpansion: Reexpansion, bounds: Bounds): Promise<void> {
  let worked: Micros = 0;
  let since = monotonicMicros();
  for (const lease of [...state.leases.values()]) {
    if (lease.state === 'ended' && !underLockDelay(lease)) continue;
    reexpansion.of(lease, state.runs.get(lease.runId)?.allowed ?? [], bounds);
    const taken = monotonicMicros() - since;
    if (taken < SLICE) continue;
    worked += taken;
    if (worked > TIME_LIMIT) throw tooCostly();
    await nextTurn();
    since = monotonicMicros();
  }
}

function tooCostly(): Fault {
  return new Fault(
    'resource_exhausted',
    'MAP_CHANGE_TOO_COSTLY',
    `Nothing was changed: expanding the live leases by the new map takes more than ${TIME_LIMIT / SECOND} s. Simplify its rules, or change it when fewer leases are live.`,
    { metadata: { time_limit_ms: String(TIME_LIMIT / MILLISECOND) } },
  );
}
