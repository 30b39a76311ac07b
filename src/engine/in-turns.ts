/**
 * Answers some in each turn of the event loop, the first at once: while one portion is answered, the callers of the one
 * before take their answers and send their next calls. Answered all at once, callers, coordinator and database would work
 * in turns, each waiting for the others.
 */
export function inTurns(count: number, perTurn: number, answer: (index: number) => void, from = 0): void {
  const end = Math.min(count, from + perTurn);
  for (let index = from; index < end; index += 1) answer(index);
  if (end < count) setImmediate(() => inTurns(count, perTurn, answer, end));
}
