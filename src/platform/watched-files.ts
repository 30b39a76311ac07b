import { stat } from 'node:fs/promises';

/**
 * Tells when any of some files may have changed: their sizes, times and inodes are looked at every few seconds, which
 * also sees files that are replaced by renaming and by turning a symbolic link, as Kubernetes does.
 */
export interface WatchedFiles {
  /** Looks for other files from now on. */
  set(files: readonly string[]): void;
  stop(): void;
}

/** Milliseconds between two looks: what a change takes at most to be seen. */
export const LOOK_EVERY_MS = 2_000;

/** One `changed` at a time; it is called again only after another change. */
export function watchFiles(
  files: readonly string[],
  changed: () => Promise<void>,
  everyMs: number = LOOK_EVERY_MS,
): WatchedFiles {
  let watched = files;
  let seen: Promise<string> = signatureOf(watched);
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    try {
      const now = await signatureOf(watched);
      if (now === (await seen)) return;
      seen = Promise.resolve(now);
      await changed();
    } finally {
      looking = false;
    }
  };
  const timer = setInterval(() => void look(), everyMs);
  timer.unref();
  return {
    set(others) {
      if (others.join('\n') === watched.join('\n')) return;
      watched = others;
      seen = signatureOf(watched);
    },
    stop: () => clearInterval(timer),
  };
}

async function signatureOf(files: readonly string[]): Promise<string> {
  const signatures = files.map(async (file) => {
    const found = await stat(file, { bigint: true }).catch(() => null);
    return found === null ? 'none' : `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}`;
  });
  return (await Promise.all(signatures)).join(' ');
}
