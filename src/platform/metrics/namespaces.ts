import { Gauge, type Registry } from 'prom-client';

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

/** The gauges of all namespaces: read when somebody looks, all from one snapshot. */
export class NamespaceGaugeSet {
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
