import type { Lease } from '../api/shapes.js';

/** Which leases are shown: what the address of the screen says. */
export interface LeaseFilter {
  /** Part of a resource's path. */
  readonly resource: string;
  /** The beginning of a run's id. */
  readonly run: string;
  /** Part of what the run says it is for. */
  readonly purpose: string;
  readonly state: '' | 'held' | 'waiting';
}

export function filtered(leases: readonly Lease[], filter: LeaseFilter): readonly Lease[] {
  const { resource, run, state } = filter;
  const purpose = filter.purpose.toLowerCase();
  if (resource === '' && run === '' && purpose === '' && state === '') return leases;
  return leases.filter((lease) => {
    if (state === 'held' && lease.state !== 'LEASE_STATE_ACTIVE') return false;
    if (state === 'waiting' && lease.state !== 'LEASE_STATE_WAITING') return false;
    if (!lease.runId.startsWith(run)) return false;
    if (purpose !== '' && !(lease.purpose ?? '').toLowerCase().includes(purpose)) return false;
    return resource === '' || (lease.entries ?? []).some((entry) => entry.resource?.includes(resource));
  });
}

/** Held leases, the one that ends first at the top. */
export function byExpiry(leases: readonly Lease[]): Lease[] {
  return leases
    .filter(({ state }) => state === 'LEASE_STATE_ACTIVE')
    .sort((a, b) => compare(a.expiresAt ?? '', b.expiresAt ?? '') || compare(a.leaseId, b.leaseId));
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
