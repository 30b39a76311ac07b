/** What a case came to. */
export type Outcome =
  /** Played, and the service did right. */
  | 'passed'
  /** A breach: the service did what it must not. */
  | 'failed'
  /** A breach that the configuration declares: told as one, and nothing to end with an error for. Never counted as passed. */
  | 'declared_gap'
  /** It has no meaning for this service, or the configuration leaves out what it needs. Never counted as passed. */
  | 'not_applicable'
  /** It could not be played to its end, so nothing is known. */
  | 'undecided';

/** One case, played on one resource. */
export interface CaseResult {
  /** Stable name, such as `late_write`; a way of playing it follows after a colon: `write_past_open:before_commit`. */
  readonly name: string;
  readonly title: string;
  /** Ids of the requirements that it proves. */
  readonly proves: readonly string[];
  readonly outcome: Outcome;
  /** Why, in a sentence; empty for what passed, but of a declared gap that was not seen. */
  readonly message: string;
  /** What happened, in order; what happened over and over is told once, with how often. */
  readonly steps: readonly string[];
  readonly ms: number;
}

/** All cases of one resource. */
export interface ResourceResult {
  readonly resource: string;
  readonly action: string;
  readonly cases: readonly CaseResult[];
  /** No case failed, but for declared gaps; none is undecided, and at least one passed. */
  readonly passed: boolean;
}

/** The service accepted, lost or hid what it must not. */
export class Breach extends Error {
  override readonly name = 'Breach';
}

/** The case cannot be played: what it rests on does not hold. */
export class Undecided extends Error {
  override readonly name = 'Undecided';
}

/** The case turned out to mean nothing for this service. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

export function hasPassed(cases: readonly CaseResult[]): boolean {
  const bad = cases.some(({ outcome }) => outcome === 'failed' || outcome === 'undecided');
  return !bad && cases.some(({ outcome }) => outcome === 'passed');
}
