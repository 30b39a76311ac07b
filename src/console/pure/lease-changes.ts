import type { LogEvent } from '../api/shapes.js';

/** What the events of a short while mean for a list of live leases that was read before. */
export interface LeaseChanges {
  /** Leases that are to be read again. */
  readonly touched: ReadonlySet<string>;
  /** Leases that have ended. */
  readonly ended: ReadonlySet<string>;
  /** New expiries, in milliseconds since 1970. */
  readonly renewed: ReadonlyMap<string, number>;
  /** Too much has happened, or something that may concern any lease: all of it is to be read again. */
  readonly everything: boolean;
}

/** Events by which leases change without being named by them. */
const SWEEPING = new Set(['conflict_map_put', 'database_identified', 'write_set_taken_over']);
/** Events about a lease that leave it as it is. */
const HARMLESS = new Set([
  'acquire_refused',
  'checks_denied',
  'credentials_issued',
  'credentials_refused',
  'renewals_refused',
  'resources_unmatched',
  'writes_admitted',
  'writes_reported',
]);

export function leaseChanges(events: readonly LogEvent[]): LeaseChanges {
  const touched = new Set<string>();
  const ended = new Set<string>();
  const renewed = new Map<string, number>();
  let everything = events.length === 0;
  for (const { kind, leaseId = '', body = '' } of events) {
    if (SWEEPING.has(kind)) everything = true;
    else if (kind === 'leases_renewed') {
      const renewals = renewalsOf(body);
      if (renewals === null) everything = true;
      for (const { leaseId: id, expiresAt } of renewals ?? []) renewed.set(id, expiresAt / 1_000);
    } else if (kind === 'lease_ended') {
      ended.add(leaseId);
      touched.delete(leaseId);
    } else if (leaseId !== '' && !HARMLESS.has(kind)) touched.add(leaseId);
  }
  return { touched, ended, renewed, everything };
}

interface Renewed {
  readonly leaseId: string;
  readonly expiresAt: number;
}

/** Null: the body is of a form that is not known here. */
function renewalsOf(body: string): readonly Renewed[] | null {
  try {
    const { renewals } = JSON.parse(body) as { renewals?: readonly Renewed[] };
    const known = renewals?.every(
      ({ leaseId, expiresAt }) => typeof leaseId === 'string' && Number.isFinite(expiresAt),
    );
    return known === true && renewals !== undefined ? renewals : null;
  } catch {
    return null;
  }
}
