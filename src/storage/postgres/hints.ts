import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { clientConfig, type Lane } from './connections.js';
import { statement } from './statement.js';

/**
 * Hints that a namespace has grown, by NOTIFY. Nothing depends on them (P11): a lost one costs the time until the next
 * poll. They are sent after the commit, on their own, and coalesced: NOTIFY takes a lock that all databases of the
 * cluster share, which an append must never wait for.
 */
export interface Hints {
  /** Soon, and at most every COALESCE_MS. Never throws, never waits. */
  announce(namespace: string): void;
  listen(listener: (namespace: string) => void): () => void;
  close(): Promise<void>;
}

const CHANNEL = 'writ_appended';
const COALESCE_MS = 20;
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 10_000;

/** A hint need not survive a crash, so its commit does not wait for the disk (it has one: NOTIFY takes a transaction id). */
const NOTIFY = statement(
  'notify',
  `
SELECT set_config('synchronous_commit', 'off', true), pg_notify('${CHANNEL}', h) FROM unnest($hints::text[]) AS h`,
);

/** For `notify: false`: says nothing and hears nothing. */
export const NO_HINTS: Hints = {
  announce: () => undefined,
  listen: () => () => undefined,
  close: async () => undefined,
};

export function createHints(url: string, lane: Lane, log: (line: string) => void): Hints {
  // Tells our own hints from those of others.
  const origin = randomUUID();
  const announcer = createAnnouncer(lane, origin);
  const listeners = new Set<(namespace: string) => void>();
  const onPayload = (payload: string): void => {
    const [from, namespace] = split(payload);
    if (from === origin) return;
    for (const listener of listeners) listener(namespace);
  };
  let receiver: Receiver | null = null;
  return {
    announce: announcer.announce,
    listen(listener) {
      // One entry per call, also when the same function listens twice.
      const own = (namespace: string): void => listener(namespace);
      listeners.add(own);
      receiver ??= createReceiver(url, onPayload, log);
      return () => void listeners.delete(own);
    },
    async close() {
      announcer.close();
      listeners.clear();
      await receiver?.close();
    },
  };
}

function split(payload: string): [origin: string, namespace: string] {
  const colon = payload.indexOf(':');
  return [payload.slice(0, colon), payload.slice(colon + 1)];
}

function createAnnouncer(lane: Lane, origin: string): { announce(namespace: string): void; close(): void } {
  const pending = new Set<string>();
  let timer: NodeJS.Timeout | null = null;
  let sentAt = Number.NEGATIVE_INFINITY;
  let closed = false;
  const send = async (): Promise<void> => {
    const hints = [...pending].map((namespace) => `${origin}:${namespace}`);
    pending.clear();
    sentAt = performance.now();
    await lane.read((session) => session.query(NOTIFY, { hints }));
  };
  return {
    announce(namespace) {
      if (closed) return;
      pending.add(namespace);
      if (timer !== null) return;
      const wait = Math.max(0, sentAt + COALESCE_MS - performance.now());
      timer = setTimeout(() => {
        timer = null;
        // A hint that cannot be sent is a hint lost.
        send().catch(() => undefined);
      }, wait);
      timer.unref();
    },
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

interface Receiver {
  close(): Promise<void>;
}

/** One connection of its own that listens, made anew whenever it ends, later and later. */
function createReceiver(url: string, onPayload: (payload: string) => void, log: (line: string) => void): Receiver {
  let client: pg.Client | null = null;
  let timer: NodeJS.Timeout | null = null;
  let delayMs = RECONNECT_FIRST_MS;
  let closed = false;

  const retry = (ended: pg.Client, reason: string): void => {
    if (closed || client !== ended) return;
    client = null;
    // Jitter: many replicas lose a server at the same moment.
    const wait = delayMs * (0.5 + Math.random());
    delayMs = Math.min(delayMs * 2, RECONNECT_MAX_MS);
    log(`the connection that listens for hints ended (${reason}); trying again in ${Math.round(wait)} ms`);
    ended.end().catch(() => undefined);
    timer = setTimeout(open, wait);
    timer.unref();
  };

  function open(): void {
    timer = null;
    const opened = new pg.Client({ ...clientConfig(url), connectionTimeoutMillis: 5_000 });
    client = opened;
    opened.on('error', (error) => retry(opened, error.message));
    opened.on('end', () => retry(opened, 'closed'));
    opened.on('notification', ({ payload }) => onPayload(payload ?? ''));
    const listening = opened.connect().then(() => opened.query(`LISTEN ${CHANNEL}`));
    listening.then(
      () => {
        delayMs = RECONNECT_FIRST_MS;
      },
      (error: unknown) => retry(opened, error instanceof Error ? error.message : String(error)),
    );
  }

  open();
  return {
    async close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      const last = client;
      client = null;
      await last?.end().catch(() => undefined);
    },
  };
}
