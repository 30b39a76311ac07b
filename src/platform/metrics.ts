import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * Everything that is counted, in one place, under one name each. Who decides counts: the engine and
 * the services the domain's numbers, the transports their calls. Labels are bounded sets (kinds,
 * reasons, methods, namespaces), never ids.
 */
export interface Metrics {
  /** Leases granted, at once or after a wait. */
  granted(namespace: string, count?: number): void;
  /** A typed refusal of an acquire or a renewal. */
  refused(namespace: string, kind: string): void;
  /** A write that a fence check did not allow, or would not have (`observe`). */
  denied(namespace: string, reason: string, count?: number): void;
  /** A credential was issued. */
  credentialIssued(namespace: string): void;
  /** A credential was refused. */
  credentialRefused(namespace: string, kind: string): void;
  /** A credential was looked at for somebody; `unknown`: it is none, or not for them. */
  introspected(outcome: 'known' | 'unknown'): void;
  /** A presented credential's signature was remembered, or had to be verified. */
  credentialLookup(found: 'hit' | 'miss'): void;
  /** A lease ended; feeds the share of expired ones too. */
  leaseEnded(namespace: string, reason: string, count?: number): void;
  /** One append to the log. */
  batchAppended(commands: number, events: number, micros: number): void;
  /** An append that was not taken: `stale`, `time`, `busy`, … */
  appendLost(outcome: string): void;
  /** One read index, and the checks and reads it served. */
  gateRead(served: number, micros: number): void;
  /** One fence check, decided; from its arrival at the service to its verdict. */
  checked(micros: number): void;
  /** A gateway asked about a request; what it was answered, by a bounded set of codes. */
  routeChecked(answer: string): void;
  /** One call over gRPC, with its status code in words. */
  rpcEnded(method: string, code: string, micros: number): void;
  /** One request over HTTP to a route that there is, with its status; of a stream, when it began to be answered. */
  httpAnswered(route: string, status: number, micros: number): void;
  /** Streams over HTTP that are open. Asked at each scrape. */
  httpStreams(read: () => number): void;
  /** A caller that could not be authenticated, by a bounded set of causes. */
  callerRefused(cause: string): void;
  /** When the server's certificate ends, in milliseconds since 1970; null: it has none. Asked at each scrape. */
  certificateEnds(read: () => number | null): void;
  /** Calls over gRPC that have not ended. */
  rpcsInFlight(read: () => number): void;
  /** Where the gauges of the namespaces come from; asked at each scrape. */
  gauges(read: () => readonly NamespaceGauges[]): void;
  /** Events of a log were published to Redis. */
  published(namespace: string, count: number): void;
  /** Of the logs that this replica publishes to Redis: how many events are not there yet. Asked at each scrape. */
  tailer(read: () => readonly { readonly namespace: string; readonly events: number }[]): void;
  /** Whether Redis can be reached; null: none is configured. Asked at each scrape. */
  redis(read: () => boolean | null): void;
  /** What is told something for as long as it listens; asked at each scrape. */
  listeners(read: () => Listeners): void;
  /** Whether this replica serves; asked at each scrape. */
  readiness(read: () => boolean): void;
  /** The text that Prometheus scrapes. */
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Streams on which this replica tells by itself what happens. */
export interface Listeners {
  readonly sessions: number;
  /** Leases that belong to one of them. */
  readonly sessionLeases: number;
  readonly watches: number;
}

/** What is true of a namespace on this replica now. */
export interface NamespaceGauges {
  readonly namespace: string;
  readonly liveLeases: number;
  readonly waiters: number;
  /** Age of the oldest waiting request; 0 when none waits. */
  readonly oldestWaiterMicros: number;
  /** Revisions that this replica knows to exist and has not applied yet. */
  readonly logLag: number;
  /** Commands that wait for the next append. */
  readonly queueDepth: number;
  /** Tracked writes whose outcome is not known. */
  readonly openWrites: number;
  /** Those of them whose lease has ended. */
  readonly inDoubt: number;
  /** 0 when none is in doubt. */
  readonly oldestInDoubtMicros: number;
  /** Patterns under which operators have stopped all grants. */
  readonly freezes: number;
  /** Runs that are over but for writes whose outcome is not known. */
  readonly stoppingRuns: number;
  /** The database clock as it was read last, less the clock of this machine. */
  readonly clockOffsetMicros: number;
}

const CALL_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const DATABASE_BUCKETS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/** Makes the registry and all metrics; `processMetrics` adds those of Node itself. */
export function createMetrics(options: { readonly processMetrics?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.processMetrics === true) collectDefaultMetrics({ register: registry });
  const gauges = new ScrapedGauges(registry);
  return {
    ...leaseCounters(registry),
    ...credentialCounters(registry),
    ...engineMetrics(registry),
    ...callMetrics(registry),
    ...callerMetrics(registry),
    ...redisMetrics(registry),
    ...listenerMetrics(registry),
    gauges: (read) => gauges.readFrom(read),
    async render() {
      gauges.refresh();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function leaseCounters(registry: Registry): Pick<Metrics, 'granted' | 'refused' | 'denied' | 'leaseEnded'> {
  const registers = [registry];
  const grants = new Counter({
    registers,
    name: 'writ_leases_granted_total',
    help: 'Leases granted.',
    labelNames: ['namespace'],
  });
  const refusals = new Counter({
    registers,
    name: 'writ_refusals_total',
    help: 'Typed refusals of acquires and renewals, by kind.',
    labelNames: ['namespace', 'kind'],
  });
  const denials = new Counter({
    registers,
    name: 'writ_fence_denials_total',
    help: 'Writes that a fence check did not allow, by reason.',
    labelNames: ['namespace', 'reason'],
  });
  const ended = new Counter({
    registers,
    name: 'writ_leases_ended_total',
    help: 'Leases that ended, by reason.',
    labelNames: ['namespace', 'reason'],
  });
  const totals = { all: 0, expired: 0 };
  new Gauge({
    registers,
    name: 'writ_leases_expired_share',
    help: 'Of the leases that ended on this replica since it started, the share that expired. 0 to 1.',
    collect() {
      this.set(totals.all === 0 ? 0 : totals.expired / totals.all);
    },
  });
  return {
    granted: (namespace, count = 1) => grants.inc({ namespace }, count),
    refused: (namespace, kind) => refusals.inc({ namespace, kind }),
    denied: (namespace, reason, count = 1) => denials.inc({ namespace, reason }, count),
    leaseEnded(namespace, reason, count = 1) {
      ended.inc({ namespace, reason }, count);
      totals.all += count;
      if (reason === 'expired') totals.expired += count;
    },
  };
}

function credentialCounters(
  registry: Registry,
): Pick<Metrics, 'credentialIssued' | 'credentialRefused' | 'introspected' | 'credentialLookup'> {
  const registers = [registry];
  const issued = new Counter({
    registers,
    name: 'writ_credentials_issued_total',
    help: 'Credentials issued.',
    labelNames: ['namespace'],
  });
  const refused = new Counter({
    registers,
    name: 'writ_credentials_refused_total',
    help: 'Credentials refused, by kind.',
    labelNames: ['namespace', 'kind'],
  });
  const introspections = new Counter({
    registers,
    name: 'writ_credential_introspections_total',
    help: 'Credentials looked at; unknown: none of ours, or not for the caller.',
    labelNames: ['outcome'],
  });
  const lookups = new Counter({
    registers,
    name: 'writ_credential_lookups_total',
    help: 'Presented credentials whose signature was remembered (hit) or verified (miss).',
    labelNames: ['found'],
  });
  return {
    credentialIssued: (namespace) => issued.inc({ namespace }),
    credentialRefused: (namespace, kind) => refused.inc({ namespace, kind }),
    introspected: (outcome) => introspections.inc({ outcome }),
    credentialLookup: (found) => lookups.inc({ found }),
  };
}

function engineMetrics(
  registry: Registry,
): Pick<Metrics, 'batchAppended' | 'appendLost' | 'gateRead' | 'checked' | 'routeChecked'> {
  const registers = [registry];
  const commands = new Histogram({
    registers,
    name: 'writ_batch_commands',
    help: 'Commands decided together in one append.',
    buckets: SIZE_BUCKETS,
  });
  const events = new Histogram({
    registers,
    name: 'writ_batch_events',
    help: 'Events written by one append.',
    buckets: SIZE_BUCKETS,
  });
  const duration = new Histogram({
    registers,
    name: 'writ_batch_duration_seconds',
    help: 'How long one append took.',
    buckets: DATABASE_BUCKETS,
  });
  const lost = new Counter({
    registers,
    name: 'writ_appends_lost_total',
    help: 'Appends that were not taken and were decided again, by why.',
    labelNames: ['outcome'],
  });
  const served = new Histogram({
    registers,
    name: 'writ_read_index_served',
    help: 'Checks and reads answered by one read index.',
    buckets: SIZE_BUCKETS,
  });
  const readIndex = new Histogram({
    registers,
    name: 'writ_read_index_duration_seconds',
    help: 'How long one read index took.',
    buckets: DATABASE_BUCKETS,
  });
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
    batchAppended(commandCount, eventCount, micros) {
      commands.observe(commandCount);
      events.observe(eventCount);
      duration.observe(micros / 1e6);
    },
    appendLost: (outcome) => lost.inc({ outcome }),
    gateRead(count, micros) {
      served.observe(count);
      readIndex.observe(micros / 1e6);
    },
    checked: (micros) => checks.observe(micros / 1e6),
    routeChecked: (answer) => routes.inc({ answer }),
  };
}

function callMetrics(
  registry: Registry,
): Pick<Metrics, 'rpcEnded' | 'httpAnswered' | 'httpStreams' | 'rpcsInFlight' | 'readiness'> {
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
  let inFlight = () => 0;
  let streams = () => 0;
  let ready = () => false;
  new Gauge({
    registers,
    name: 'writ_rpcs_in_flight',
    help: 'gRPC calls that have not ended.',
    collect() {
      this.set(inFlight());
    },
  });
  new Gauge({
    registers,
    name: 'writ_http_streams_open',
    help: 'Streams over HTTP that are open: of events, of fences, exports.',
    collect() {
      this.set(streams());
    },
  });
  new Gauge({
    registers,
    name: 'writ_ready',
    help: '1: this replica serves; 0: /readyz says why not.',
    collect() {
      this.set(ready() ? 1 : 0);
    },
  });
  return {
    rpcEnded: (method, code, micros) => duration.observe({ method, code }, micros / 1e6),
    httpAnswered: (route, status, micros) => answered.observe({ route, status }, micros / 1e6),
    httpStreams(read) {
      streams = read;
    },
    rpcsInFlight(read) {
      inFlight = read;
    },
    readiness(read) {
      ready = read;
    },
  };
}

function callerMetrics(registry: Registry): Pick<Metrics, 'callerRefused' | 'certificateEnds'> {
  const registers = [registry];
  const refused = new Counter({
    registers,
    name: 'writ_callers_refused_total',
    help: 'Calls and requests whose caller could not be authenticated, by cause.',
    labelNames: ['cause'],
  });
  let ends: () => number | null = () => null;
  new Gauge({
    registers,
    name: 'writ_tls_certificate_end_seconds',
    help: 'When the certificate of the server ends, in seconds since 1970; 0: it has none.',
    collect() {
      this.set((ends() ?? 0) / 1_000);
    },
  });
  return {
    callerRefused: (cause) => refused.inc({ cause }),
    certificateEnds(read) {
      ends = read;
    },
  };
}

function redisMetrics(registry: Registry): Pick<Metrics, 'published' | 'tailer' | 'redis'> {
  const registers = [registry];
  const published = new Counter({
    registers,
    name: 'writ_tailer_published_total',
    help: 'Events that this replica published to Redis Streams.',
    labelNames: ['namespace'],
  });
  let lags: () => readonly { readonly namespace: string; readonly events: number }[] = () => [];
  let connected = (): boolean | null => null;
  new Gauge({
    registers,
    name: 'writ_tailer_lag_events',
    help: 'Events of a log that are not in its Redis Stream yet, from the replica that publishes it.',
    labelNames: ['namespace'],
    collect() {
      this.reset();
      for (const { namespace, events } of lags()) this.set({ namespace }, events);
    },
  });
  new Gauge({
    registers,
    name: 'writ_redis_connected',
    help: '1: Redis can be reached; 0: it cannot, and everything goes on without; no value: none is configured.',
    labelNames: [],
    collect() {
      const up = connected();
      this.remove();
      if (up !== null) this.set(up ? 1 : 0);
    },
  });
  return {
    published: (namespace, count) => published.inc({ namespace }, count),
    tailer(read) {
      lags = read;
    },
    redis(read) {
      connected = read;
    },
  };
}

function listenerMetrics(registry: Registry): Pick<Metrics, 'listeners'> {
  const registers = [registry];
  let now = (): Listeners => ({ sessions: 0, sessionLeases: 0, watches: 0 });
  new Gauge({
    registers,
    name: 'writ_sessions',
    help: 'Session streams that are open.',
    collect() {
      this.set(now().sessions);
    },
  });
  new Gauge({
    registers,
    name: 'writ_session_leases',
    help: 'Leases whose session is told what happens to them.',
    collect() {
      this.set(now().sessionLeases);
    },
  });
  new Gauge({
    registers,
    name: 'writ_fence_watches',
    help: 'Watches of fences that are open.',
    collect() {
      this.set(now().watches);
    },
  });
  return {
    listeners(read) {
      now = read;
    },
  };
}

/** Gauges that are read when somebody looks, all from one snapshot. */
class ScrapedGauges {
  #read: () => readonly NamespaceGauges[] = () => [];
  readonly #gauges: readonly { readonly gauge: Gauge<'namespace'>; readonly of: (row: NamespaceGauges) => number }[];

  constructor(registry: Registry) {
    const gauge = (name: string, help: string, of: (row: NamespaceGauges) => number) => ({
      gauge: new Gauge({ registers: [registry], name, help, labelNames: ['namespace'] }),
      of,
    });
    this.#gauges = [
      gauge('writ_leases_live', 'Leases that are held.', (row) => row.liveLeases),
      gauge('writ_waiters', 'Requests that wait for locks.', (row) => row.waiters),
      gauge(
        'writ_oldest_waiter_age_seconds',
        'Age of the oldest waiting request; 0 when none waits.',
        (row) => row.oldestWaiterMicros / 1e6,
      ),
      gauge(
        'writ_log_lag_revisions',
        'Log revisions known to exist and not applied on this replica yet.',
        (row) => row.logLag,
      ),
      gauge('writ_open_writes', 'Tracked writes whose outcome is not known.', (row) => row.openWrites),
      gauge(
        'writ_writes_in_doubt',
        'Those of them whose lease has ended: nobody is granted their resource.',
        (row) => row.inDoubt,
      ),
      gauge(
        'writ_oldest_in_doubt_age_seconds',
        'How long the oldest write in doubt has been so; 0 when none is.',
        (row) => row.oldestInDoubtMicros / 1e6,
      ),
      gauge('writ_freezes', 'Patterns under which operators have stopped all grants.', (row) => row.freezes),
      gauge(
        'writ_runs_stopping',
        'Runs that are over but for tracked writes whose outcome is not known.',
        (row) => row.stoppingRuns,
      ),
      gauge(
        'writ_database_clock_offset_seconds',
        'The database clock less the clock of this machine.',
        (row) => row.clockOffsetMicros / 1e6,
      ),
      gauge('writ_command_queue_depth', 'Commands that wait for the next append.', (row) => row.queueDepth),
    ];
  }

  readFrom(read: () => readonly NamespaceGauges[]): void {
    this.#read = read;
  }

  refresh(): void {
    const rows = this.#read();
    for (const { gauge, of } of this.#gauges) {
      gauge.reset();
      for (const row of rows) gauge.set({ namespace: row.namespace }, of(row));
    }
  }
}
