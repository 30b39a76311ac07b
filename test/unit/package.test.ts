import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly types: string }>>;
}
const { dependencies, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

/** What the declarations of a subpath import from elsewhere, through all the files that they import. */
function importedByTypes(entry: string): Set<string> {
  const bare = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    for (const [, from = ''] of text.matchAll(/(?:from|import\()\s*["']([^"']+)["']/g)) {
      if (from.startsWith('.')) visit(join(dirname(file), from.replace(/\.js$/, '.d.ts')));
      else if (!from.startsWith('node:')) bare.add(from);
    }
  };
  visit(join(root, entry));
  return bare;
}

// A service that installs the package gets `dependencies` and nothing else: what the public types name must come with
// it, or it is `any` there and an error without skipLibCheck.
describe('the package as it is installed', () => {
  it.each(Object.entries(exports))('%s brings the types that its declarations name', (_, { types }) => {
    for (const name of importedByTypes(types)) {
      const [scope = '', rest] = name.split('/');
      const packageName = name.startsWith('@') ? `${scope}/${rest}` : scope;
      expect(Object.keys(dependencies)).toContain(packageName);
      // What has no types of its own has them there.
      if (existsSync(join(root, 'node_modules/@types', packageName)))
        expect(Object.keys(dependencies)).toContain(`@types/${packageName}`);
    }
  });

  it('holds what runs, is read or is looked at, and no tests', () => {
    const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8',
    });
    const answer = JSON.parse(packed) as readonly PackedFiles[] | Readonly<Record<string, PackedFiles>>;
    const files = Object.values(answer)[0]?.files.map(({ path }) => path) ?? [];
    for (const { types } of Object.values(exports)) expect(files).toContain(types.replace('./', ''));
    for (const file of [
      'dist/cli/index.js',
      'migrations/0001_log.sql',
      'proto/writ/v1/types.proto',
      'docs/target-kit.md',
    ]) {
      expect(files).toContain(file);
    }
    const first = new Set(files.map((path) => path.split('/')[0]));
    expect([...first].sort()).toEqual([
      'LICENSE',
      'README.md',
      'dist',
      'docs',
      'examples',
      'migrations',
      'package.json',
      'proto',
      'src',
    ]);
    expect(files.filter((path) => path.endsWith('.tsbuildinfo'))).toEqual([]);
    expect(readdirSync(join(root, 'migrations')).every((file) => files.includes(`migrations/${file}`))).toBe(true);
  }, 60_000);
});

interface PackedFiles {
  readonly files: readonly { readonly path: string }[];
}
