import { readFileSync } from 'node:fs';
import { mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { SeenHead } from './history.js';

/** Remembers outside the database how far each log went, so that lost history is noticed. */
export interface Witness {
  read(namespace: string): SeenHead | null;
  /** Notes a head; it is on disk within 100 ms, and at `flush`. */
  note(namespace: string, head: SeenHead): void;
  flush(): Promise<void>;
  close(): Promise<void>;
}

const FILE = 'witness.json';
const WRITE_EVERY_MS = 100;

/** A witness in a file of the data directory, replaced atomically. */
export function fileWitness(dataDir: string, onProblem: (error: unknown) => void): Witness {
  const path = join(dataDir, FILE);
  // Several replicas may share a data directory: each writes a file of its own and renames it.
  const fresh = `${path}.${process.pid}`;
  const heads = new Map<string, SeenHead>(Object.entries(readHeads(path)));
  let dirty = false;
  let writing: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    if (!dirty) return;
    dirty = false;
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const file = await open(fresh, 'w', 0o600);
    try {
      await file.writeFile(JSON.stringify(Object.fromEntries(heads)));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  };
  const flush = (): Promise<void> => {
    writing = writing.then(write, write);
    return writing;
  };
  const timer = setInterval(() => void flush().catch(onProblem), WRITE_EVERY_MS);
  timer.unref();
  return {
    read: (namespace) => heads.get(namespace) ?? null,
    note(namespace, head) {
      if (heads.get(namespace)?.revision === head.revision) return;
      heads.set(namespace, { revision: head.revision, hash: head.hash });
      dirty = true;
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

function readHeads(path: string): Record<string, SeenHead> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, SeenHead>;
  } catch {
    // No witness, or one that a crash cut off: the same as none. A new postmaster then counts as lost history.
    return {};
  }
}
