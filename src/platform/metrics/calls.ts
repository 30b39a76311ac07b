import { Counter, Histogram, type Registry } from 'prom-client';
import { scrapedGauge } from './scraped-gauge.js';

const CALL_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Calls over gRPC and HTTP, and whether they are served. */
export interface CallMetrics {
  /** One call over gRPC, with its status code in words. */
  rpcEnded(method: string, code: string, micros: number): void;
  /** One request over HTTP to a route that there is, with its status; of a stream, when it began to be answered. */
  httpAnswered(route: string, status: number, micros: number): void;
  /** Streams over HTTP that are open. Asked at each scrape. */
  httpStreams(read: () => number): void;
  /** Calls over gRPC that have not ended. */
  rpcsInFlight(read: () => number): void;
  /** Whether this replica serves; asked at each scrape. */
  readiness(read: () => boolean): void;
}

export function callMetrics(registry: Registry): CallMetrics {
  const registers = [registry];
  const duration = new Histogram({
    registers,
    name: 'writ_rpc_duration_seconds',
    help: 'How long a gRPC call took, by method and status code.',
    labelNames: ['method', 'code'],
    buckets: CALL_BUCKETS,
  });
  const answered = new Histogram({
    registers,
    name: 'writ_http_request_duration_seconds',
    help: 'How long an HTTP request took to be answered, by route and status.',
    labelNames: ['route', 'status'],
    buckets: CALL_BUCKETS,
  });
  const readyFrom = scrapedGauge(registry, 'writ_ready', '1: this replica serves; 0: /readyz says why not.');
  return {
    rpcEnded: (method, code, micros) => duration.observe({ method, code }, micros / 1e6),
    httpAnswered: (route, status, micros) => answered.observe({ route, status }, micros / 1e6),
    rpcsInFlight: scrapedGauge(registry, 'writ_rpcs_in_flight', 'gRPC calls that have not ended.'),
    httpStreams: scrapedGauge(
      registry,
      'writ_http_streams_open',
      'Streams over HTTP that are open: of events, of fences, exports.',
    ),
    readiness: (read) => readyFrom(() => (read() ? 1 : 0)),
  };
}

/** Fence checks, and the questions of gateways. */
export interface CheckMetrics {
  /** One fence check, decided; from its arrival at the service to its verdict. */
  checked(micros: number): void;
  /** A gateway asked about a request; what it was answered, by a bounded set of codes. */
  routeChecked(answer: string): void;
}

export function checkMetrics(registry: Registry): CheckMetrics {
  const registers = [registry];
  const checks = new Histogram({
    registers,
    name: 'writ_fence_check_duration_seconds',
    help: 'How long a fence check took to be decided.',
    buckets: CALL_BUCKETS,
  });
  const routes = new Counter({
    registers,
    name: 'writ_gateway_checks_total',
    help: 'Requests that gateways asked about, by what they were answered.',
    labelNames: ['answer'],
  });
  return {
    checked: (micros) => checks.observe(micros / 1e6),
    routeChecked: (answer) => routes.inc({ answer }),
  };
}

/** Who calls, and over what. */
export interface CallerMetrics {
  /** A caller that could not be authenticated, by a bounded set of causes. */
  callerRefused(cause: string): void;
  /** When the server's certificate ends, in milliseconds since 1970; null: it has none. Asked at each scrape. */
  certificateEnds(read: () => number | null): void;
}

export function callerMetrics(registry: Registry): CallerMetrics {
  const refused = new Counter({
    registers: [registry],
    name: 'writ_callers_refused_total',
    help: 'Calls and requests whose caller could not be authenticated, by cause.',
    labelNames: ['cause'],
  });
  const endsFrom = scrapedGauge(
    registry,
    'writ_tls_certificate_end_seconds',
    'When the certificate of the server ends, in seconds since 1970; 0: it has none.',
  );
  return {
    callerRefused: (cause) => refused.inc({ cause }),
    certificateEnds: (read) => endsFrom(() => (read() ?? 0) / 1_000),
  };
}

/** Of the streams on which this replica tells by itself what happens: how many are open. */
export interface Listeners {
  readonly sessions: number;
  /** Leases that belong to one of them. */
  readonly sessionLeases: number;
  readonly watches: number;
}

/** Who listens. */
export interface ListenerMetrics {
  /** What is told something for as long as it listens; asked at each scrape. */
  listeners(read: () => Listeners): void;
}

export function listenerMetrics(registry: Registry): ListenerMetrics {
  const sessions = scrapedGauge(registry, 'writ_sessions', 'Session streams that are open.');
  const leases = scrapedGauge(registry, 'writ_session_leases', 'Leases whose session is told what happens to them.');
  const watches = scrapedGauge(registry, 'writ_fence_watches', 'Watches of fences that are open.');
  return {
    listeners(read) {
      sessions(() => read().sessions);
      leases(() => read().sessionLeases);
      watches(() => read().watches);
    },
  };
}
