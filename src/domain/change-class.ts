/**
 * The classes of write paths (W4), a closed list: what happens when a write meets a version that it was not made from, and
 * who resolves it.
 */
export const CHANGE_CLASSES = ['independent', 'derived', 'shared_pointer', 'membership', 'shared_document'] as const;

/** The class of one write path. */
export type ChangeClass = (typeof CHANGE_CLASSES)[number];
