import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What a package exports, by name, and the file that declares it. */
function exportsOf(index: string): Map<string, string> {
  const found = new Map<string, string>();
  const reexports = /export (?:type )?\{([^}]*)\} from '([^']+)'/g;
  for (const [, names = '', from = ''] of readFileSync(index, 'utf8').matchAll(reexports)) {
    const path = join(dirname(index), from.replace(/\.js$/, '.ts'));
    const inner = path.endsWith('index.ts') ? exportsOf(path) : undefined;
    for (const part of names.split(',')) {
      const [name = ''] = part
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (name !== '') found.set(name, inner?.get(name) ?? path);
    }
  }
  return found;
}

/** Whether the declaration, or the one on the line before it that it overloads, comes right after a doc comment. */
function isDocumented(name: string, path: string): boolean {
  const lines = readFileSync(path, 'utf8').split('\n');
  const declares = new RegExp(
    `^export (?:abstract |async )*(?:class|interface|function\\*?|const|type|let) ${name}\\b`,
  );
  const at = lines.findIndex((line) => declares.test(line));
  return at > 0 && /\*\/$/.test(lines[at - 1] ?? '');
}

describe.each([
  ['writ/runner', 'src/clients/runner/index.ts'],
  ['writ/target', 'src/clients/target/index.ts'],
])('%s', (_, index) => {
  it('says of everything that it exports what it is', () => {
    const exported = exportsOf(index);
    expect(exported.size).toBeGreaterThan(30);
    expect([...exported].filter(([name, path]) => !isDocumented(name, path))).toEqual([]);
  });
});
