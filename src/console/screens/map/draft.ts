import { useEffect } from 'preact/hooks';
import { get } from '../../api/client.js';
import { type Data, useData } from '../../api/data.js';
import type { ConflictMap } from '../../api/shapes.js';
import { isChanged, type MapDraft, type OtherEdit, seen } from '../../pure/map-draft.js';
import { createStore, useStore } from '../../store.js';

/** Edits that have begun, by namespace: they stay while one looks at other screens. */
const drafts = createStore<ReadonlyMap<string, MapDraft>>(new Map());

export function setDraft(namespace: string, draft: MapDraft): void {
  drafts.set(new Map(drafts.get()).set(namespace, draft));
}

export const asEdit = (map: ConflictMap): OtherEdit => ({
  version: map.version ?? '0',
  document: map.document ?? '',
  author: map.author ?? '',
  reason: map.reason ?? '',
  createdAt: map.createdAt ?? '',
});

/** The edit of a namespace's map; it hears of what others put. */
export function useDraft(namespace: string): { readonly draft: MapDraft | null; readonly map: Data<ConflictMap> } {
  const all = useStore(drafts);
  const map = useData('map', (signal) => get<ConflictMap>('/v1/conflict-map', { namespace, signal }), {
    touchedBy: ({ kind }) => kind === 'conflict_map_put',
  });
  useEffect(() => {
    if (map.value === undefined) return;
    setDraft(namespace, seen(drafts.get().get(namespace) ?? null, asEdit(map.value)));
  }, [map.value, namespace]);
  const draft = all.get(namespace) ?? null;
  useUnsaved(draft !== null && isChanged(draft));
  return { draft, map };
}

/** Whoever closes the page with an edit that is nowhere else is asked. */
function useUnsaved(unsaved: boolean): void {
  useEffect(() => {
    if (!unsaved) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [unsaved]);
}
