import type { Call, CallKind, CallShapes, History } from '../history.js';
import { type Knowledge, knowledgeOf } from './knowledge.js';

/** What a change that was answered must have left in the log. */
export interface Acknowledged {
  readonly call: Call;
  readonly what: string;
  readonly about: readonly string[];
  /** The event's revision; null: it is not there. */
  readonly revision: number | null;
}

type Find = (call: Call, log: LogIndex) => { what: string; about: string[]; revision: number | undefined } | null;

interface LogIndex {
  readonly granted: ReadonlyMap<string, number>;
  readonly ended: ReadonlyMap<string, number>;
  readonly runs: ReadonlyMap<string, number>;
  readonly stopped: ReadonlyMap<string, number>;
  readonly maps: ReadonlyMap<number, number>;
  /** Revisions by lease and the expiry that they gave it. */
  readonly renewed: ReadonlyMap<string, number>;
  readonly leaseOfKey: ReadonlyMap<string, string>;
}

/** Every change that somebody was told of and that no loss of history excuses. */
export function acknowledged(history: History): Acknowledged[] {
  if (history.log.length === 0) return [];
  const knowledge = knowledgeOf(history);
  const log = indexOf(knowledge);
  return history.calls.flatMap((call) => {
    if (call.told === null || call.answered === null || knowledge.mayBeLost(call)) return [];
    const found = FIND[call.kind]?.(call, log) ?? null;
    return found === null ? [] : [{ ...found, call, revision: found.revision ?? null }];
  });
}

/** Narrows a finder to its kind of call. */
function finder<K extends CallKind>(
  find: (asked: CallShapes[K]['asked'], told: CallShapes[K]['told'], log: LogIndex) => ReturnType<Find>,
): Find {
  return (call, log) => find(call.asked as CallShapes[K]['asked'], call.told as CallShapes[K]['told'], log);
}

const FIND: { readonly [K in CallKind]?: Find } = {
  create_run: finder<'create_run'>((_, { runId }, log) => ({
    what: `run ${runId} was made`,
    about: [runId],
    revision: log.runs.get(runId),
  })),
  acquire: finder<'acquire'>((_, told, log) =>
    told.outcome !== 'lease'
      ? null
      : {
          what: `lease ${told.lease.leaseId} was granted`,
          about: [told.lease.leaseId, told.lease.runId],
          revision: log.granted.get(told.lease.leaseId),
        },
  ),
  renew: finder<'renew'>(({ leaseId }, told, log) =>
    told.outcome !== 'lease'
      ? null
      : {
          what: `lease ${leaseId} was renewed until ${told.lease.expiresAt}`,
          about: [leaseId],
          revision: log.renewed.get(`${leaseId} ${told.lease.expiresAt}`),
        },
  ),
  release: finder<'release'>(({ leaseId, runId, key }, { outcome }, log) => {
    if (outcome === 'nothing_held') return null;
    const id = leaseId === '' ? (log.leaseOfKey.get(`${runId} ${key}`) ?? '') : leaseId;
    return { what: `lease ${id} of key ${key} was released`, about: [id], revision: log.ended.get(id) };
  }),
  revoke: finder<'revoke'>(({ leaseId }, _, log) => ({
    what: `lease ${leaseId} was revoked`,
    about: [leaseId],
    revision: log.ended.get(leaseId),
  })),
  stop_run: finder<'stop_run'>(({ runId }, _, log) => ({
    what: `run ${runId} was stopped`,
    about: [runId],
    revision: log.stopped.get(runId),
  })),
  held: finder<'held'>((_, { leaseId }, log) => ({
    what: `lease ${leaseId} was granted to the kit`,
    about: [leaseId],
    revision: log.granted.get(leaseId),
  })),
  pushed: finder<'pushed'>(({ leaseId }, { event }, log) => {
    if (event !== 'granted' && event !== 'lost') return null;
    const revision = event === 'granted' ? log.granted.get(leaseId) : log.ended.get(leaseId);
    return { what: `lease ${leaseId} was pushed as ${event}`, about: [leaseId], revision };
  }),
  put_map: finder<'put_map'>((_, { version }, log) => ({
    what: `version ${version} of the map was put`,
    about: [],
    revision: log.maps.get(version),
  })),
};

function indexOf({ events }: Knowledge): LogIndex {
  const granted = new Map<string, number>();
  const ended = new Map<string, number>();
  const runs = new Map<string, number>();
  const stopped = new Map<string, number>();
  const maps = new Map<number, number>();
  const renewed = new Map<string, number>();
  const leaseOfKey = new Map<string, string>();
  for (const { revision, event } of events) {
    const { body } = event;
    if (body.kind === 'run_created') runs.set(body.run.runId, revision);
    else if (body.kind === 'conflict_map_put') maps.set(body.version, revision);
    else if (body.kind === 'lease_ended') ended.set(body.leaseId, revision);
    else if (body.kind === 'run_state_changed' && (body.endedAt !== null || body.state === 'stopping')) {
      if (!stopped.has(body.runId)) stopped.set(body.runId, revision);
    } else if (body.kind === 'leases_renewed') {
      for (const { leaseId, expiresAt } of body.renewals) {
        // Two renewals of one moment give the same.
        const name = `${leaseId} ${expiresAt}`;
        if (!renewed.has(name)) renewed.set(name, revision);
      }
    } else if (body.kind === 'lease_granted' || body.kind === 'lease_queued') {
      const { leaseId, runId, idempotencyKey, expiresAt } = body.lease;
      leaseOfKey.set(`${runId} ${idempotencyKey}`, leaseId);
      if (body.kind !== 'lease_granted') continue;
      granted.set(leaseId, revision);
      // A renewal that changes nothing is answered with what the grant gave.
      renewed.set(`${leaseId} ${expiresAt}`, revision);
    }
  }
  return { granted, ended, runs, stopped, maps, renewed, leaseOfKey };
}
