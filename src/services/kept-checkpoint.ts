import type { EventRecord } from '../storage/store.js';
import type { Checkpoint } from './api.js';

/** What a checkpoint that the reader has kept says against a log. */
export interface KeptFlaw {
  readonly fault: 'cut_off' | 'rewritten' | 'header';
  readonly revision: number | null;
  readonly message: string;
}

/** Against the export as a whole, by its first line: an older one, whole in itself, is only noticed by this. */
export function flawOfExport(
  kept: Checkpoint,
  found: { readonly namespace: string; readonly afterRevision: number; readonly checkpoint: Checkpoint },
): KeptFlaw | null {
  const { revision } = kept;
  const header = (message: string): KeptFlaw => ({ fault: 'header', revision: null, message });
  if (found.namespace !== kept.namespace)
    return header(
      `The export is of namespace "${found.namespace}", the checkpoint you have kept of "${kept.namespace}".`,
    );
  if (revision <= found.afterRevision)
    return header(
      `The export begins after revision ${found.afterRevision}, the checkpoint you have kept is of ${revision}.`,
    );
  if (found.checkpoint.revision >= revision) return null;
  const message = `The log is cut off: it goes on to revision ${revision} at least, as the checkpoint you have kept says, and the export ends at ${found.checkpoint.revision}.`;
  return { fault: 'cut_off', revision: found.checkpoint.revision + 1, message };
}

/** Against one event, linked to those before it. */
export function flawOfEvent(kept: Checkpoint, event: EventRecord): KeptFlaw | null {
  if (event.revision !== kept.revision || event.hash === kept.hash) return null;
  const message = `Event ${event.revision} is not the one that the checkpoint you have kept signed: it, or an earlier one, was changed, and all hashes after it.`;
  return { fault: 'rewritten', revision: event.revision, message };
}
