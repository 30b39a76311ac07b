import { collectDefaultMetrics, Registry } from 'prom-client';
import {
  type CallerMetrics,
  type CallMetrics,
  type CheckMetrics,
  callerMetrics,
  callMetrics,
  checkMetrics,
  type ListenerMetrics,
  listenerMetrics,
} from './metrics/calls.js';
import { type EngineMetrics, engineMetrics, type RedisMetrics, redisMetrics } from './metrics/engine.js';
import { type CredentialMetrics, credentialCounters, type LeaseMetrics, leaseCounters } from './metrics/leases.js';
import { NamespaceGaugeSet, type NamespaceGauges } from './metrics/namespaces.js';

/**
 * Everything that is counted, in one place, under one name each. Who decides counts: the engine and
 * the services the domain's numbers, the transports their calls. Labels are bounded sets (kinds,
 * reasons, methods, namespaces), never ids.
 */
export interface Metrics
  extends LeaseMetrics,
    CredentialMetrics,
    EngineMetrics,
    RedisMetrics,
    CheckMetrics,
    CallMetrics,
    CallerMetrics,
    ListenerMetrics {
  /** Where the gauges of the namespaces come from; asked at each scrape. */
  gauges(read: () => readonly NamespaceGauges[]): void;
  /** The text that Prometheus scrapes. */
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Makes the registry and all metrics; `processMetrics` adds those of Node itself. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry });
  const namespaces = new NamespaceGaugeSet(registry);
  return {
    ...leaseCounters(registry),
    ...credentialCounters(registry),
    ...engineMetrics(registry),
    ...redisMetrics(registry),
    ...checkMetrics(registry),
    ...callMetrics(registry),
    ...callerMetrics(registry),
    ...listenerMetrics(registry),
    gauges: (read) => namespaces.readFrom(read),
    async render() {
      namespaces.refresh();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}
