import canonicalizeModule from 'canonicalize';

// The package is CommonJS; under NodeNext its default export is typed as the module.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

/**
 * RFC 8785. Of strings and finite numbers JSON.stringify writes what it prescribes, so that only the order of the names
 * is left: what has them in order already is written by the engine, the rest by the library, three times slower and
 * with ten times the garbage. Whoever makes a value for each grant writes its names in order, therefore.
 *
 * Throws on what has no canonical JSON.
 */
export function canonicalJson(value: unknown): string {
  const text = isInOrder(value) ? JSON.stringify(value) : canonicalize(value);
  if (text === undefined) throw new TypeError('there is no canonical JSON of this value');
  return text;
}

function isInOrder(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isInOrder);
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  let last = '';
  for (const name of Object.keys(value)) {
    if (name < last || !isInOrder((value as Record<string, unknown>)[name])) return false;
    last = name;
  }
  return true;
}
