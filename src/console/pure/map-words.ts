/** The words of a conflict map, from its JSON schema: keys, and the values that a key can have. */
export type MapWords = ReadonlyMap<string, readonly string[]>;

export function wordsOf(schema: unknown): MapWords {
  const words = new Map<string, Set<string>>();
  collect(schema, null, words);
  return new Map([...words].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, values]) => [key, [...values].sort()]));
}

function collect(schema: unknown, key: string | null, words: Map<string, Set<string>>): void {
  if (typeof schema !== 'object' || schema === null) return;
  const { enum: values, type, properties, ...rest } = schema as Record<string, unknown>;
  const known = key === null ? undefined : words.get(key);
  if (Array.isArray(values)) for (const value of values) known?.add(String(value));
  if (type === 'boolean') for (const value of ['true', 'false']) known?.add(value);
  for (const [name, property] of Object.entries((properties ?? {}) as Record<string, unknown>)) {
    if (!words.has(name)) words.set(name, new Set());
    collect(property, name, words);
  }
  for (const below of Object.values(rest)) {
    for (const one of Array.isArray(below) ? below : [below]) collect(one, null, words);
  }
}

/** What can be written at the end of a line that begins like this; `from`: where in it that begins. */
export interface Offer {
  readonly from: number;
  readonly options: readonly string[];
  /** Keys are followed by a colon. */
  readonly areKeys: boolean;
}

const COMMENT = /(?:^|\s)#/;
const VALUE = /(?:^|[\s{,-])"?([a-z_]+)"?:\s+([a-z_]*)$/;
const KEY = /(?:^|[\s{,-])([a-z_]+)$/;

export function offerAt(line: string, words: MapWords): Offer | null {
  if (COMMENT.test(line)) return null;
  const [, key = '', begun = ''] = VALUE.exec(line) ?? [];
  const values = words.get(key) ?? [];
  if (values.length > 0) return { from: line.length - begun.length, options: values, areKeys: false };
  const word = key === '' ? KEY.exec(line)?.[1] : undefined;
  if (word === undefined) return null;
  return { from: line.length - word.length, options: [...words.keys()], areKeys: true };
}
