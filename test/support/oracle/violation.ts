/** A promise was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

export function promise(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Violation(what);
}
