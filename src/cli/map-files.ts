import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { mergeFragments, type TextFile } from '../services/conflict-map-text.js';
import { type Cli, CliError } from './cli.js';
import { EXIT } from './exit-codes.js';

/** A conflict map as the user keeps it: one file, or a directory of fragments. */
export interface MapFiles {
  readonly files: readonly TextFile[];
  /** What would be put: one file as it is, fragments as one document, comments kept. */
  text(): string;
}

const FRAGMENT = /\.(ya?ml|json)$/i;
const MAX_FRAGMENTS = 1_000;

/** Reads a file, every .yaml, .yml and .json file below a directory in the order of their names, or `-`: standard input. */
export async function readMapFiles(cli: Cli, path: string): Promise<MapFiles> {
  const files = path === '-' ? [{ name: '<stdin>', text: await cli.stdin() }] : await read(path);
  return {
    files,
    text() {
      const merged = mergeFragments(files);
      if (merged.ok) return merged.text;
      const problems = merged.problems.map(
        ({ file, line, column, message }) => `  ${file}:${line}:${column}: ${message}`,
      );
      throw new CliError(
        EXIT.usage,
        `${files.length === 1 ? 'The map cannot be read' : 'The fragments make no document'}:\n${problems.join('\n')}`,
      );
    },
  };
}

async function read(path: string): Promise<TextFile[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [{ name: path, text: await readFile(path, 'utf8') }];
    const names = (await readdir(path, { recursive: true })).filter((name) => FRAGMENT.test(name)).sort();
    if (names.length === 0) throw new CliError(EXIT.usage, `${path} holds no .yaml, .yml or .json file.`);
    if (names.length > MAX_FRAGMENTS)
      throw new CliError(EXIT.usage, `${path} holds more than ${MAX_FRAGMENTS} fragments.`);
    return await Promise.all(
      names.map(async (name) => ({ name: join(path, name), text: await readFile(join(path, name), 'utf8') })),
    );
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(EXIT.usage, `${path} cannot be read: ${(error as Error).message}`);
  }
}
