/**
 * Lock modes of multi-granularity locking. IS, IX, S and X are Gray's (Gray et al., "Granularity of
 * Locks and Degrees of Consistency in a Shared Data Base", 1976). O is an optimistic writer: any
 * number of them stand side by side, never beside a leased one (C8); IO announces one further down.
 */
export type Mode = 'IS' | 'IX' | 'IO' | 'S' | 'X' | 'O';

export const MODES: readonly Mode[] = ['IS', 'IX', 'IO', 'S', 'X', 'O'];

const COMPATIBLE: Readonly<Record<Mode, readonly Mode[]>> = {
  IS: ['IS', 'IX', 'IO', 'S'],
  IX: ['IS', 'IX', 'IO'],
  IO: ['IS', 'IX', 'IO', 'O'],
  S: ['IS', 'S'],
  X: [],
  O: ['IO', 'O'],
};

/** For each mode, those that another run may not hold on the same key at the same time (P1). */
export const INCOMPATIBLE: Readonly<Record<Mode, readonly Mode[]>> = Object.fromEntries(
  MODES.map((mode) => [mode, MODES.filter((other) => !COMPATIBLE[mode].includes(other))]),
) as Record<Mode, Mode[]>;

/** Whether two runs may hold these modes on one key at once. */
export function compatible(a: Mode, b: Mode): boolean {
  return COMPATIBLE[a].includes(b);
}
