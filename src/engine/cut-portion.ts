import type { Store } from '../storage/store.js';

/** Removes a portion of what a recorded cut gave up, if there is any; says whether there is more. */
export async function cutPortion(
  store: Pick<Store, 'readCut' | 'cutLog'>,
  namespace: string,
  limit: number,
): Promise<{ readonly removed: number; readonly more: boolean }> {
  const cut = await store.readCut(namespace);
  if (cut === null || cut.lowest >= cut.firstRevision) return { removed: 0, more: false };
  const removed = await store.cutLog(namespace, limit);
  return { removed, more: removed >= limit };
}
