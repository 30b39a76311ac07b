/** How well writes to a resource are really protected: what the map says, and what a rehearsal has shown. */
export interface Protection {
  readonly level: 'guarded' | 'checked' | 'advisory';
  readonly why: string;
}

interface Known {
  /** Pattern of the kind; empty: none matches. */
  readonly kind: string;
  /** As the map has it: introspect, view or local. */
  readonly validation: string;
  readonly rehearsal: { readonly counts: boolean; readonly whyNot: string } | null;
}

const ASKS: Readonly<Record<string, string>> = {
  introspect: 'Its targets ask before each write',
  view: 'Its targets decide by a view that follows the log',
  local: 'Its targets verify credentials by themselves, and do not ask',
};

export function protectionOf({ kind, validation, rehearsal }: Known): Protection {
  if (kind === '')
    return {
      level: 'advisory',
      why: 'No kind of the conflict map matches it: nothing is granted, and no target is asked about.',
    };
  const asks = ASKS[validation] ?? 'Its targets are told by the map how to check';
  if (rehearsal?.counts === true)
    return {
      level: 'guarded',
      why: `${asks}, and a rehearsal has shown that a late write is refused where the data lives.`,
    };
  const shown = rehearsal === null || rehearsal.whyNot === '' ? 'no rehearsal was recorded' : rehearsal.whyNot;
  return {
    level: 'checked',
    why: `${asks}. That a late write is refused where the data lives was not shown: ${shown}`,
  };
}
