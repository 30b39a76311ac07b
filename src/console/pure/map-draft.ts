/**
 * An edit of the conflict map: the version that it began from, the text as it is now, and, when somebody else was faster,
 * what they put meanwhile. No step loses the text.
 */
export interface MapDraft {
  /** The version that the edit is against; `0`: there is no map yet. */
  readonly version: string;
  /** The text of that version. */
  readonly base: string;
  readonly text: string;
  /** A newer version, put by somebody else since. */
  readonly other: OtherEdit | null;
}

export interface OtherEdit {
  readonly version: string;
  readonly document: string;
  readonly author: string;
  readonly reason: string;
  readonly createdAt: string;
}

export const draftOf = (version: string, document: string): MapDraft => ({
  version,
  base: document,
  text: document,
  other: null,
});

export const isChanged = ({ base, text }: MapDraft): boolean => text !== base;

/** The map as it was just read. An edit that has begun goes on; one that has not is of the new version. */
export function seen(draft: MapDraft | null, now: OtherEdit): MapDraft {
  if (draft === null || (!isChanged(draft) && draft.other === null)) return draftOf(now.version, now.document);
  if (now.version === draft.version) return draft;
  if (draft.text === now.document) return draftOf(now.version, now.document);
  return { ...draft, other: now };
}

/** Goes on with one's own text, against the other edit: what it says stands in place of what they put. */
export function ontoOther(draft: MapDraft): MapDraft {
  if (draft.other === null) return draft;
  return { version: draft.other.version, base: draft.other.document, text: draft.text, other: null };
}

/** Gives up one's own text for theirs. */
export function takeOther(draft: MapDraft): MapDraft {
  return draft.other === null ? draft : draftOf(draft.other.version, draft.other.document);
}

export const withText = (draft: MapDraft, text: string): MapDraft => (draft.text === text ? draft : { ...draft, text });

/** Applied: the text is the new version. */
export const applied = (draft: MapDraft, version: string, document: string): MapDraft => ({
  version,
  base: document,
  text: draft.text,
  other: null,
});
