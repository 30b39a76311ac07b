import type { Allowance } from './entry.js';
import type { Violation } from './fault.js';
import { type Pattern, parsePattern, patternCovers } from './pattern.js';
import type { Micros } from './time.js';

/**
 * The most that the runs of a principal may ever have (R1): nobody writes their own contract beyond it. A part that is
 * null sets no bound of its own; the coordinator's limits hold all the same.
 */
export interface Ceiling {
  /** Every pattern and action of a contract must lie within these. */
  readonly allowed: readonly Allowance[] | null;
  /** Longest ttl of a lease; a longer one is cut to it, as to the kind's. */
  readonly maxTtl: Micros | null;
  /** How far after its creation a run's authority may end. */
  readonly maxAuthority: Micros | null;
  /** The last instant at which any run's authority may end. */
  readonly latestEnd: Micros | null;
  /** Runs that have not ended, in one namespace. */
  readonly maxLiveRuns: number | null;
  /** Active leases and waiting requests of all its runs, in one namespace. */
  readonly maxLiveLeases: number | null;
}

/** What of a contract lies beyond what the allowances give, field by field; `whose` names them, such as "your ceiling". */
export function beyondAllowances(
  wanted: readonly Allowance[],
  given: readonly Allowance[],
  whose: string,
): Violation[] {
  const bounds = given.map(({ pattern, actions }) => ({ pattern: patternOf(pattern), actions }));
  return wanted.flatMap(({ pattern, actions }, index): Violation[] => {
    const inner = patternOf(pattern);
    const covering = bounds.filter((bound) => patternCovers(bound.pattern, inner));
    if (covering.length === 0) {
      const listed = given.map((allowance) => allowance.pattern).join(', ') || 'nothing';
      return [
        {
          field: `allowed[${index}].pattern`,
          description: `${pattern} is not within what ${whose} allows: ${listed}`,
        },
      ];
    }
    const allowed = new Set(covering.flatMap((bound) => bound.actions));
    if (allowed.has('*')) return [];
    return actions.flatMap((action, position) =>
      allowed.has(action)
        ? []
        : [
            {
              field: `allowed[${index}].actions[${position}]`,
              description: `${action} is not within what ${whose} allows on ${pattern}: ${[...allowed].join(', ') || 'nothing'}`,
            },
          ],
    );
  });
}

function patternOf(text: string): Pattern {
  const parsed = parsePattern(text);
  if (!parsed.ok) throw new Error(`${text}: ${parsed.reason}`);
  return parsed.pattern;
}
