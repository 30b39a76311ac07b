import type { Standing, Waiter } from '../pure/waits.js';
import { get } from './client.js';
import { type Data, useData } from './data.js';
import type { Answer } from './shapes.js';

export interface Waiters {
  readonly waiters: readonly Waiter[];
  /** False: more wait than are told. */
  readonly complete: boolean;
}

const TOUCHING = new Set([
  'conflict_map_put',
  'database_identified',
  'doubt_settled',
  'lease_amended',
  'lease_ended',
  'lease_granted',
  'lease_queued',
  'pattern_frozen',
  'pattern_thawed',
]);

/** Who waits, and for whom. */
export function useWaiters(): Data<Waiters> {
  return useData(
    'waiters',
    async (signal) => {
      const { waiters = [], nextPageToken = '' } = await get<Answer<'ListWaitersResponse'>>('/v1/waiters', {
        signal,
        query: { page_size: '1000' },
      });
      return { waiters: waiters.map(waiterOf), complete: nextPageToken === '' };
    },
    { touchedBy: ({ kind }) => TOUCHING.has(kind) },
  );
}

function waiterOf({ lease, place = 0, waitsFor = [], waitingSince = '' }: Answer<'Waiter'>): Waiter {
  return {
    leaseId: lease?.leaseId ?? '',
    runId: lease?.runId ?? '',
    purpose: lease?.purpose ?? '',
    place,
    since: waitingSince,
    resources: (lease?.entries ?? []).map(({ resource = '' }) => resource),
    waitsFor: waitsFor.map((blocker) => ({
      leaseId: blocker.leaseId || blocker.blockerRef || '',
      runId: blocker.runId ?? '',
      purpose: blocker.purpose ?? '',
      resource: blocker.resource ?? '',
      rule: blocker.rule ?? '',
      standing: standingOf(blocker),
    })),
  };
}

function standingOf({ waiting, inDoubtSince, lockDelayUntil }: Answer<'Blocker'>): Standing {
  if (inDoubtSince) return 'in doubt';
  if (lockDelayUntil) return 'lock delay';
  return waiting === true ? 'waits' : 'holds';
}
