import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { createAnnouncer, HintPayloads, type Hints } from '../hints.js';
import { clientConfig, type Lane } from './connections.js';
import { statement } from './statement.js';

const CHANNEL = 'writ_appended';
const RECONNECT_FIRST_MS = 100;
const RECONNECT_MAX_MS = 10_000;

/** A hint need not survive a crash, so its commit does not wait for the disk (it has one: NOTIFY takes a transaction id). */
const NOTIFY = statement(
  'notify',
  `
SELECT set_config('synchronous_commit', 'off', true), pg_notify('${CHANNEL}', h) FROM unnest($hints::text[]) AS h`,
);

/**
 * Hints by NOTIFY. They are sent after the commit, on their own: NOTIFY takes a lock that all databases of the cluster
 * share, which an append must never wait for.
 */
export function createHints(url: string, lane: Lane, log: (line: string) => void): Hints {
  const payloads = new HintPayloads(randomUUID());
  const announcer = createAnnouncer((namespaces) => {
    const hints = namespaces.map((namespace) => payloads.of(namespace));
    return lane.read((session) => session.query(NOTIFY, { hints }));
  });
  let receiver: Receiver | null = null;
  return {
    announce: announcer.announce,
    listen(listener) {
      receiver ??= createReceiver(url, (payload) => payloads.received(payload), log);
      return payloads.listen(listener);
    },
    async close() {
      announcer.close();
      payloads.clear();
      await receiver?.close();
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
