import type { Allowance, Scope } from '../entry.js';
import { coverSubtree, type Pattern, parsePattern } from '../pattern.js';
import { PatternIndex } from '../pattern-index.js';

interface CompiledAllowance {
  readonly pattern: Pattern;
  readonly everyAction: boolean;
  readonly actions: ReadonlySet<string>;
}

/** A run's contract (R1), compiled: which resources it may touch, by which actions. */
export interface Contract {
  readonly index: PatternIndex<CompiledAllowance>;
}

/** A contract that allows everything: for questions about the map alone. */
export const ALLOWS_EVERYTHING: readonly Allowance[] = [{ pattern: '{any...}', actions: ['*'] }];

/** A run keeps its contract as one array for life, so each is compiled once. */
const COMPILED = new WeakMap<readonly Allowance[], Contract>();

export function contractOf(allowances: readonly Allowance[]): Contract {
  const known = COMPILED.get(allowances);
  if (known !== undefined) return known;
  const contract = { index: new PatternIndex<CompiledAllowance>() };
  for (const { pattern, actions } of allowances) {
    const parsed = parsePattern(pattern);
    // A pattern that cannot be read allows nothing (P8); services refuse it before it gets here.
    if (parsed.ok)
      contract.index.add(parsed.pattern, {
        pattern: parsed.pattern,
        everyAction: actions.includes('*'),
        actions: new Set(actions),
      });
  }
  COMPILED.set(allowances, contract);
  return contract;
}

/** What the contract says of one resource, or of it and everything below. */
export interface Permission {
  /** Whether the action is allowed there. */
  allows(action: string): boolean;
  /** Whether anything at all is allowed there: enough to keep others from changing it. */
  readonly anything: boolean;
}

/**
 * What the contract allows. For a SUBTREE the allowances must provably cover all that can be below,
 * together: `tenant/1842` and `tenant/1842/{all...}` do, `tenant/{id}` does not.
 */
export function permissionOn(contract: Contract, resource: readonly string[], scope: Scope): Permission {
  if (scope === 'exact') {
    const allowances = contract.index.all(resource);
    return {
      anything: allowances.length > 0,
      allows: (action) => allowances.some((allowance) => allowance.everyAction || allowance.actions.has(action)),
    };
  }
  const allowances = contract.index.atOrBelow(resource);
  const covers = (able: readonly CompiledAllowance[]): boolean =>
    coverSubtree(
      able.map((allowance) => allowance.pattern),
      resource,
    );
  return {
    anything: covers(allowances),
    allows: (action) =>
      covers(allowances.filter((allowance) => allowance.everyAction || allowance.actions.has(action))),
  };
}
