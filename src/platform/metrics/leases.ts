import { Counter, Gauge, type Registry } from 'prom-client';

/** What the events of the log say of leases. */
export interface LeaseMetrics {
  /** Leases granted, at once or after a wait. */
  granted(namespace: string, count?: number): void;
  /** A typed refusal of an acquire or a renewal. */
  refused(namespace: string, kind: string): void;
  /** A write that a fence check did not allow, or would not have (`observe`). */
  denied(namespace: string, reason: string, count?: number): void;
  /** A lease ended; feeds the share of expired ones too. */
  leaseEnded(namespace: string, reason: string, count?: number): void;
}

export function leaseCounters(registry: Registry): LeaseMetrics {
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

/** Credentials: issued, refused, looked at. */
export interface CredentialMetrics {
  /** A credential was issued. */
  credentialIssued(namespace: string): void;
  /** A credential was refused. */
  credentialRefused(namespace: string, kind: string): void;
  /** A credential was looked at for somebody; `unknown`: it is none, or not for them. */
  introspected(outcome: 'known' | 'unknown'): void;
  /** A presented credential's signature was remembered, or had to be verified. */
  credentialLookup(found: 'hit' | 'miss'): void;
}

export function credentialCounters(registry: Registry): CredentialMetrics {
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
