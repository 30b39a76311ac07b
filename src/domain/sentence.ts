/** A sentence with somebody's own text in it, which may end like one itself or not; empty: without. */
export function sentence(what: string, reason: string): string {
  const text = reason === '' ? what : `${what}: ${reason}`;
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
