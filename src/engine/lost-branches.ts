import type { LostBranch } from '../domain/event.js';
import type { Store } from '../storage/store.js';
import { decodeEvent } from './event-codec.js';

/** Most losses that are looked at and kept, the last ones. */
const MAX_LOST_BRANCHES = 100;

/** The losses of history that the log tells of, the newest first: by their own events, and by the last cut. */
export async function lostBranches(store: Pick<Store, 'listEvents'>, namespace: string): Promise<LostBranch[]> {
  const filter = { kinds: ['database_identified', 'log_cut'], newestFirst: true, limit: MAX_LOST_BRANCHES };
  const events = (await store.listEvents(namespace, filter)).map(decodeEvent);
  const told = events.flatMap(({ body, time }): readonly LostBranch[] => {
    if (body.kind === 'log_cut') return body.lostBranches;
    if (body.kind !== 'database_identified' || !body.lostHistory) return [];
    return [{ revision: body.continuesFrom.revision, time }];
  });
  const once = new Map(told.map((branch) => [`${branch.revision} ${branch.time}`, branch]));
  return [...once.values()].sort((a, b) => b.time - a.time).slice(0, MAX_LOST_BRANCHES);
}
