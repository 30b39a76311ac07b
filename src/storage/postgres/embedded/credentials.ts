import { randomBytes } from 'node:crypto';
import { link, readFile, unlink } from 'node:fs/promises';
import type { Cluster } from './cluster.js';
import { absent, hasCode } from './errors.js';
import { syncDirectory, writeDurably } from './files.js';

/** The role, which is also the bootstrap superuser. */
export const ROLE = 'writ';
export const DATABASE = 'writ';

export function connectionUrl(password: string, port: number, database: string): string {
  return `postgres://${ROLE}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

/** Linked into place whole, so that whoever else creates this directory at the same moment uses the same one. */
export async function ensurePassword(cluster: Cluster): Promise<string> {
  const draft = `${cluster.passwordFile}.${randomBytes(6).toString('hex')}`;
  await writeDurably(draft, `${randomBytes(32).toString('base64url')}\n`);
  try {
    await link(draft, cluster.passwordFile).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
    await syncDirectory(cluster.root);
  } finally {
    await unlink(draft);
  }
  return readPassword(cluster);
}

export async function readPassword(cluster: Cluster): Promise<string> {
  const password = (await readFile(cluster.passwordFile, 'utf8').catch(absent))?.trim();
  if (password !== undefined && password !== '') return password;
  throw new Error(
    `${cluster.passwordFile} is missing or empty: it holds the password of the database in ${cluster.pgdata}. ` +
      'Put it back from a backup.',
  );
}
