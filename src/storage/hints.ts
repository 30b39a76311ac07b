/**
 * Hints that a namespace has grown. Nothing depends on them (P11): a lost one costs the time until the next poll. They
 * are sent after the commit and coalesced.
 */
export interface Hints {
  /** Soon, and at most every COALESCE_MS. Never throws, never waits. */
  announce(namespace: string): void;
  /** Calls back for hints of others; hears nothing before the first listener. Returns what takes it away again. */
  listen(listener: (namespace: string) => void): () => void;
  close(): Promise<void>;
}

const COALESCE_MS = 20;

/** Says nothing and hears nothing. */
export const NO_HINTS: Hints = {
  announce: () => undefined,
  listen: () => () => undefined,
  close: async () => undefined,
};

/** Gathers what is announced and sends it together; a hint that cannot be sent is a hint lost. */
export function createAnnouncer(send: (namespaces: readonly string[]) => Promise<unknown>): {
  announce(namespace: string): void;
  close(): void;
} {
  const pending = new Set<string>();
  let timer: NodeJS.Timeout | null = null;
  let sentAt = Number.NEGATIVE_INFINITY;
  let closed = false;
  const flush = (): void => {
    timer = null;
    const namespaces = [...pending];
    pending.clear();
    sentAt = performance.now();
    send(namespaces).catch(() => undefined);
  };
  return {
    announce(namespace) {
      if (closed) return;
      pending.add(namespace);
      if (timer !== null) return;
      timer = setTimeout(flush, Math.max(0, sentAt + COALESCE_MS - performance.now()));
      timer.unref();
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

/** Tells the hints of others from one's own, which come back as well. */
export class HintPayloads {
  private readonly listeners = new Set<(namespace: string) => void>();

  constructor(private readonly origin: string) {}

  of(namespace: string): string {
    return `${this.origin}:${namespace}`;
  }

  received(payload: string): void {
    const colon = payload.indexOf(':');
    if (payload.slice(0, colon) === this.origin) return;
    for (const listener of this.listeners) listener(payload.slice(colon + 1));
  }

  listen(listener: (namespace: string) => void): () => void {
    // One entry per call, also when the same function listens twice.
    const own = (namespace: string): void => listener(namespace);
    this.listeners.add(own);
    return () => void this.listeners.delete(own);
  }

  clear(): void {
    this.listeners.clear();
  }
}
