/** Different lists that are remembered; past it they are forgotten, and shared anew from then on. */
const MAX_LISTS = 10_000;

const LISTS = new Map<string, readonly string[]>();

/**
 * One list for all that are equal: 100,000 leases of 8 entries carry the same few lists of actions, and each with a list
 * of its own they would be a fifth of the memory of all leases.
 */
export function sharedActions(actions: readonly string[]): readonly string[] {
  // Most lists have one action, and no JSON of a list begins like this.
  const id = actions.length === 1 ? `=${actions[0]}` : JSON.stringify(actions);
  const known = LISTS.get(id);
  if (known !== undefined) return known;
  if (LISTS.size >= MAX_LISTS) LISTS.clear();
  LISTS.set(id, actions);
  return actions;
}
