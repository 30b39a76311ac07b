import { Violation } from '../oracle/violation.js';

export function expectPromise(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Violation(what);
}
