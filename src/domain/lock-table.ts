import { BaseHolderIndex, type HolderIndex, OverlayHolderIndex } from './holder-index.js';
import { MODES, type Mode } from './modes.js';

/** Which leases hold, or wait for, which key: one index per mode, so that a shared ancestor's many
 * intention locks are never walked to find the one that is in the way. */
export type LockTable = Readonly<Record<Mode, HolderIndex>>;

function tableOf<T extends HolderIndex>(make: (mode: Mode) => T): Readonly<Record<Mode, T>> {
  return { IS: make('IS'), IX: make('IX'), IO: make('IO'), S: make('S'), X: make('X'), O: make('O') };
}

export function baseLockTable(): Readonly<Record<Mode, BaseHolderIndex>> {
  return tableOf(() => new BaseHolderIndex());
}

export function overlayLockTable(base: LockTable): Readonly<Record<Mode, OverlayHolderIndex>> {
  return tableOf((mode) => new OverlayHolderIndex(base[mode]));
}

/** From now on lies over another base, which holds what the one before did. */
export function rebaseLocks(locks: Readonly<Record<Mode, OverlayHolderIndex>>, base: LockTable): void {
  for (const mode of MODES) locks[mode].rebase(base[mode]);
}
