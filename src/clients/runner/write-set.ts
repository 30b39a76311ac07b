import { Access, Scope } from '../../gen/writ/v1/types.js';

/** One resource that is asked for. */
export interface RequestedResource {
  readonly resource: string;
  /** Default `write`. */
  readonly access?: 'read' | 'stable_read' | 'write';
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  /** Empty on a write: every write action that the run's contract allows. */
  readonly actions?: readonly string[];
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
