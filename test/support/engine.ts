import { DEFAULT_BOUNDS, type Decision } from '../../src/domain/decide/decision.js';
import { SECOND } from '../../src/domain/time.js';
import { createNamespace } from '../../src/engine/establish.js';
import { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import type { EngineOptions } from '../../src/engine/options.js';
import { monotonicMicros } from '../../src/platform/clock.js';

/** Options of an engine by itself, without the services around it: nobody counts or logs, and nothing is witnessed. */
export function engineOptions(more: Pick<EngineOptions, 'store'> & Partial<EngineOptions>): EngineOptions {
  const nothing = (): undefined => undefined;
  return {
    bounds: DEFAULT_BOUNDS,
    maxClockSkew: 1 * SECOND,
    failover: 'asynchronous',
    witness: { read: () => null, note: nothing, flush: async () => undefined, close: async () => undefined },
    monotonicNow: monotonicMicros,
    alive: () => true,
    proveCommits: async () => undefined,
    observer: {
      batchAppended: nothing,
      appendLost: nothing,
      gateRead: nothing,
      problem: nothing,
      notice: nothing,
    },
    maxBatch: 1_024,
    maxQueue: 1_024,
    pollInterval: SECOND,
    ...more,
  };
}

/** The engine of a namespace, which is made if it is not there. */
export async function startedEngine(options: EngineOptions, namespace: string): Promise<NamespaceEngine> {
  await createNamespace(namespace, 'system', options);
  const engine = new NamespaceEngine(namespace, options);
  await engine.start();
  return engine;
}

/** A command that any namespace takes. */
export const note = (reason: string) => (decision: Decision) =>
  decision.emit({ kind: 'texts_erased', runId: '', reason });
