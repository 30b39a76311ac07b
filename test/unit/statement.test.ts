import { describe, expect, it } from 'vitest';
import { statement, valuesFor } from '../../src/storage/postgres/statement.js';

describe('a statement', () => {
  it('numbers its parameters, each once', () => {
    const made = statement('s', 'SELECT $b::text, $a, $b');
    expect(made).toEqual({ name: 'writ_s', text: 'SELECT $1::text, $2, $1', parameters: ['b', 'a'] });
    expect(valuesFor(made, { a: 1, b: 'x' })).toEqual(['x', 1]);
    expect(() => valuesFor(made, { a: 1 })).toThrow('$b');
  });

  it('refuses a name that Postgres would cut off: 63 bytes at most', () => {
    expect(statement('x'.repeat(58), 'SELECT 1').name).toHaveLength(63);
    expect(() => statement('x'.repeat(59), 'SELECT 1')).toThrow('63 bytes');
    expect(() => statement('ü'.repeat(30), 'SELECT 1')).toThrow('63 bytes');
  });
});
