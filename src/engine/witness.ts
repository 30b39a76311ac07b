import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
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

/**
 * A witness in a file of the data directory, replaced atomically. Replicas may share the directory: each
 * keeps what another has noted later.
 */
export function fileWitness(dataDir: string, onProblem: (error: unknown) => void): Witness {
  const path = join(dataDir, FILE);
  const heads = new Map<string, SeenHead>(Object.entries(readHeads(path)));
  let dirty = false;
  let writing: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    if (!dirty) return;
    dirty = false;
    try {
      await mkdir(dataDir, { recursive: true, mode: 0o700 });
      await replace(path, JSON.stringify(mergedWith(heads, readHeads(path))));
    } catch (error) {
      dirty = true;
      throw error;
    }
  };
  const flush = (): Promise<void> => {
    writing = writing.then(write, write);
    return writing;
  };
  const timer = setInterval(() => void flush().catch(onProblem), WRITE_EVERY_MS);
  timer.unref();
  return {
    read: (namespace) => heads.get(namespace) ?? null,
    note(namespace, { revision, hash, time }) {
      const known = heads.get(namespace);
      if (known?.revision === revision && known.hash === hash) return;
      heads.set(namespace, { revision, hash, time });
      dirty = true;
    },
    flush,
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}

/** Of two heads the later one: time goes on also where a lost log begins again at a lower revision. */
function mergedWith(own: ReadonlyMap<string, SeenHead>, stored: Readonly<Record<string, SeenHead>>): object {
  const merged: Record<string, SeenHead> = { ...stored };
  for (const [namespace, head] of own) {
    if ((merged[namespace]?.time ?? 0) <= head.time) merged[namespace] = head;
  }
  return merged;
}

async function replace(path: string, text: string): Promise<void> {
  const fresh = `${path}.${randomUUID()}`;
  try {
    const file = await open(fresh, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}

function readHeads(path: string): Record<string, SeenHead> {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Record<string, SeenHead>;
  } catch {
    // No witness, or one that cannot be read: the same as none. A new postmaster then counts as lost history.
    return {};
  }
}
