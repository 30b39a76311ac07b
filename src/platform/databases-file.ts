import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { parseSecretJson } from './secret-json.js';
import { isDatabaseUrl } from './settings.js';

/** WRIT_DATABASES_FILE cannot be used; says where it is wrong, and never repeats a URL, which carries a password. */
export class DatabasesFileError extends Error {
  override readonly name = 'DatabasesFileError';
}

const MAX_DATABASES = 100;

const form = z
  .record(
    z.string(),
    z.string().refine(isDatabaseUrl, 'must begin with postgres:// or postgresql:// and contain no spaces'),
  )
  .refine(
    (databases) => Object.keys(databases).every((name) => /^[a-z][a-z0-9-]{0,63}$/.test(name)),
    'a name is 1 to 64 of a-z, 0-9 and "-", beginning with a letter',
  )
  .refine((databases) => !('main' in databases), '"main" is the database of WRIT_DATABASE_URL, or the embedded one')
  .refine((databases) => Object.keys(databases).length <= MAX_DATABASES, `at most ${MAX_DATABASES} databases`);

/**
 * The databases beside the main one: a JSON object of names and URLs, such as `{"eu": "postgres://…"}`.
 *
 * @returns URLs by name
 */
export async function readDatabasesFile(path: string): Promise<ReadonlyMap<string, string>> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new DatabasesFileError(`${path}: cannot be read (${error.message})`, { cause: error });
  });
  const json = parseSecretJson(text, (what) => new DatabasesFileError(`${path}: ${what}`));
  const parsed = form.safeParse(json);
  if (parsed.success) return new Map(Object.entries(parsed.data));
  const lines = parsed.error.issues.map(({ path: at, message }) => `${path}: ${[...at, message].join(': ')}`);
  throw new DatabasesFileError(lines.join('\n'));
}
