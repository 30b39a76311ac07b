import { isInDoubt } from '../domain/admission.js';
import type { State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { wallClockMicros } from '../platform/clock.js';
import type { NamespaceGauges } from '../platform/metrics/namespaces.js';

/** What is true of a namespace now, as this replica knows it. */
export function gaugesOf(engine: NamespaceEngine): NamespaceGauges {
  const now = engine.estimatedNow();
  let oldest = now;
  if (engine.state.waitingLeases > 0) {
    for (const lease of engine.state.leases.values())
      if (lease.state === 'waiting') oldest = Math.min(oldest, lease.createdAt);
  }
  return {
    namespace: engine.namespace,
    liveLeases: engine.state.activeLeases,
    waiters: engine.state.waitingLeases,
    oldestWaiterMicros: now - oldest,
    logLag: engine.lag,
    queueDepth: engine.queueLength,
    openWrites: engine.state.openWrites,
    inDoubt: engine.state.inDoubt,
    freezes: engine.state.freezes.size,
    oldestInDoubtMicros: oldestInDoubt(engine.state, now),
    stoppingRuns: stoppingRuns(engine.state),
    clockOffsetMicros: now - wallClockMicros(),
  };
}

/** Only a write that is open keeps a run from its end. */
function stoppingRuns({ admissions, openWrites, runs }: State): number {
  if (openWrites === 0) return 0;
  const stopping = new Set<string>();
  for (const { runId } of admissions.values()) if (runs.get(runId)?.state === 'stopping') stopping.add(runId);
  return stopping.size;
}

/** How long the oldest write in doubt has been so; 0: none is. */
function oldestInDoubt(state: State, now: Micros): Micros {
  if (state.inDoubt === 0) return 0;
  let since = now;
  for (const admission of state.admissions.values())
    if (isInDoubt(admission)) since = Math.min(since, admission.inDoubtSince ?? now);
  return now - since;
}
