/** Steps of one round of what is tried again and again, at most. */
const MAX_ROUND = 4;
/** Less is told as it was. */
const MIN_ROUNDS = 3;

/** The story of a case, in which rounds that are the same are told once: `read`, `wrote: 500`, `not yet`, `… 41 more times`. */
export function foldRepeats(steps: readonly string[]): readonly string[] {
  const told: string[] = [];
  for (let at = 0; at < steps.length; ) {
    const { length, rounds } = repeatAt(steps, at);
    told.push(...steps.slice(at, at + length));
    if (rounds > 1) told.push(`… ${rounds - 1} more times`);
    at += length * rounds;
  }
  return told;
}

/** The shortest round that begins here and comes back at once, often enough; else one step, once. */
function repeatAt(steps: readonly string[], at: number): { readonly length: number; readonly rounds: number } {
  for (let length = 1; length <= MAX_ROUND; length += 1) {
    let end = at + length;
    while (end < steps.length && steps[end] === steps[end - length]) end += 1;
    const rounds = Math.floor((end - at) / length);
    if (rounds >= MIN_ROUNDS) return { length, rounds };
  }
  return { length: 1, rounds: 1 };
}
