/** A step of a pattern: a literal, one captured segment, or all that remains (one segment at least). */
export type PatternSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'capture'; readonly name: string }
  | { readonly kind: 'rest'; readonly name: string };

const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Reads what stands between two slashes, in the map as in route tables; a string: why it cannot be. */
export function parsePatternSegment(part: string): PatternSegment | string {
  if (!/[{}]/.test(part)) return { kind: 'literal', text: part };
  const inner = /^\{([^{}]*)\}$/.exec(part)?.[1];
  if (inner === undefined) return `${JSON.stringify(part)}: a capture is a whole segment, {name} or {name...}`;
  const rest = inner.endsWith('...');
  const name = rest ? inner.slice(0, -3) : inner;
  if (!NAME.test(name))
    return `${JSON.stringify(part)}: a capture's name has letters, digits, "_" and "-", begins with a letter or "_", and is at most 64 long`;
  return { kind: rest ? 'rest' : 'capture', name };
}
