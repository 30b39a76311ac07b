import { randomBytes } from 'node:crypto';
import { link, open, rm } from 'node:fs/promises';

/** Makes a file readable by its owner only, linked into place with its content: nobody reads half of it, and the first of several wins. */
export async function createOnce(path: string, content: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(draft, path).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
}
