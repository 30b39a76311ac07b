import { Access, Scope } from '../../gen/writ/v1/types.js';

/** One resource that is asked for. */
export interface RequestedResource {
  /** Its path: 1 to 32 segments, at most 1,024 bytes of UTF-8 in NFC; or an alias of the conflict map. */
  readonly resource: string;
  /** Default `write`. */
  readonly access?: 'read' | 'stable_read' | 'write';
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  /** At most 32. Default, and empty on a write: every write action of the kind that the run's contract allows. */
  readonly actions?: readonly string[];
  /** The version that the run has read, as the target names it, at most 256 bytes; recorded in the log. */
  readonly observedVersion?: string;
}

/** A change of what a lease covers: at least one of the three. */
export interface WriteSetChange {
  readonly add?: readonly RequestedResource[];
  /** Resources of which everything that was asked for is given up. */
  readonly remove?: readonly string[];
  /** In place of everything that was asked for on its resource; it may only be less. No actions on a write: those held. */
  readonly downgrade?: readonly RequestedResource[];
  /** The same key is the same change, however often it is sent. Default: a new one. */
  readonly idempotencyKey?: string;
  /** Finds the attempt in the log (`writ why`). */
  readonly requestId?: string;
}

const ACCESS = {
  read: Access.ACCESS_READ,
  stable_read: Access.ACCESS_STABLE_READ,
  write: Access.ACCESS_WRITE,
} as const;
const SCOPE = { exact: Scope.SCOPE_EXACT, subtree: Scope.SCOPE_SUBTREE } as const;

/** The access of an entry, in a word. */
export function accessWord(access: Access): NonNullable<RequestedResource['access']> {
  if (access === Access.ACCESS_READ) return 'read';
  return access === Access.ACCESS_STABLE_READ ? 'stable_read' : 'write';
}

/** The scope of an entry, in a word. */
export function scopeWord(scope: Scope): NonNullable<RequestedResource['scope']> {
  return scope === Scope.SCOPE_SUBTREE ? 'subtree' : 'exact';
}

/** Resources as the contract words them. */
export function wireEntries(resources: readonly RequestedResource[]) {
  return resources.map((one) => ({
    resource: one.resource,
    access: ACCESS[one.access ?? 'write'],
    scope: SCOPE[one.scope ?? 'exact'],
    actions: [...(one.actions ?? [])],
    observedVersion: one.observedVersion,
  }));
}

export function wireChange({ add = [], remove = [], downgrade = [], idempotencyKey, requestId }: WriteSetChange) {
  return {
    add: wireEntries(add),
    remove: [...remove],
    downgrade: wireEntries(downgrade),
    idempotencyKey: idempotencyKey ?? '',
    requestId: requestId ?? '',
  };
}
