import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMicros } from './clock.js';
import type { Logger } from './log.js';

/** How the coordinator's process ends; documented for whoever starts it. */
export const EXIT = {
  /** It was asked to stop, and did, within the deadline; calls may have been cut off at it (F26). */
  stopped: 0,
  /** A bug. */
  failed: 1,
  /** A setting or a file it names is wrong. */
  configuration: 2,
  /** A port is taken, or may not be used. */
  port: 3,
  /** The database cannot be reached or used: down, wrong schema, not durable. */
  database: 4,
  /** Something did not stop within the deadline and was left behind. */
  stopIncomplete: 5,
  /** A second signal ended it at once. */
  interrupted: 130,
} as const;

/** Why the coordinator cannot start, in words for the person who started it. */
export class StartError extends Error {
  override readonly name = 'StartError';
  constructor(
    readonly exitCode: number,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

/** Why a port cannot be listened on: it is taken or may not be used, or this machine has no such address. */
export function cannotListen(host: string, port: number, what: 'gRPC' | 'HTTP', error: Error): StartError {
  const nowhere = /EADDRNOTAVAIL|ENOTFOUND|EAI_AGAIN/.exec(error.message)?.[0];
  if (nowhere !== undefined) {
    const why = `this machine has no such address (${nowhere}). WRIT_HOST says where both ports listen.`;
    return new StartError(EXIT.configuration, `cannot listen on ${host}:${port} for ${what}: ${why}`, error);
  }
  const why = /EADDRINUSE/.test(error.message) ? 'the port is taken' : error.message;
  const variable = `WRIT_${what.toUpperCase()}_PORT`;
  return new StartError(
    EXIT.port,
    `cannot listen on ${host}:${port} for ${what}: ${why}. ${variable} chooses the port; 0 picks a free one.`,
    error,
  );
}

/** Something that runs between start and stop. Both are called at most once, in that order. */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  /** Called also when start failed half-way. Returns when it has stopped; tries to within `withinMs`. */
  stop(withinMs: number): Promise<void>;
}

/**
 * Starts components in the order they were added and stops them in the reverse order, within a
 * deadline. Both are idempotent: a stop during a start waits for the component that is starting and
 * starts no further one.
 */
export class Lifecycle {
  readonly #log: Logger;
  readonly #components: Component[] = [];
  /** Those whose start was called. */
  readonly #begun: Component[] = [];
  #starting: Promise<void> | undefined;
  #stopping: Promise<readonly string[]> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(component: Component): void {
    this.#components.push(component);
  }

  /** Whether a stop was asked for. */
  get isStopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Starts everything; when one fails, it is the caller's to call stop. */
  start(): Promise<void> {
    this.#starting ??= this.#startAll();
    return this.#starting;
  }

  async #startAll(): Promise<void> {
    for (const component of this.#components) {
      if (this.isStopping) throw new StartError(EXIT.stopped, 'asked to stop while starting');
      this.#begun.push(component);
      const begun = monotonicMicros();
      await component.start();
      this.#log.debug({ component: component.name, duration_ms: millisSince(begun) }, 'started');
    }
  }

  /** Stops what was started; returns the names of those that did not stop within the deadline. */
  stop(withinMs: number): Promise<readonly string[]> {
    this.#stopping ??= this.#stopAll(withinMs);
    return this.#stopping;
  }

  async #stopAll(withinMs: number): Promise<readonly string[]> {
    const begun = monotonicMicros();
    const remaining = () => Math.max(0, withinMs - millisSince(begun));
    // A start in flight would otherwise start what was just stopped.
    if (this.#starting !== undefined)
      await endsWithin(
        this.#starting.catch(() => undefined),
        remaining(),
      );
    const left: string[] = [];
    for (const component of this.#begun.toReversed()) {
      const since = monotonicMicros();
      const stopped = await this.#stopOne(component, remaining());
      this.#log.debug({ component: component.name, stopped, duration_ms: millisSince(since) }, 'stopped');
      if (!stopped) left.push(component.name);
    }
    if (left.length > 0) this.#log.error({ left }, 'not stopped within the deadline');
    return left;
  }

  async #stopOne(component: Component, withinMs: number): Promise<boolean> {
    try {
      return await endsWithin(component.stop(withinMs), withinMs);
    } catch (error) {
      this.#log.error({ component: component.name, err: error }, 'stopping failed');
      return false;
    }
  }
}

/** Whether the work ends within the time; a rejection is passed on, one that comes later is ignored. */
export async function endsWithin(work: Promise<unknown>, withinMs: number): Promise<boolean> {
  const timer = new AbortController();
  const timeout = pause(withinMs, false, { signal: timer.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), timeout]);
  } finally {
    timer.abort();
    work.catch(() => undefined);
  }
}

function millisSince(begun: number): number {
  return Math.round((monotonicMicros() - begun) / 1000);
}

/** One Ctrl-C can arrive several times: from the terminal, and once more from npm, which passes it on. */
const SAME_SIGNAL_WITHIN = 1_000_000;

/**
 * Calls `stop` at the first SIGTERM or SIGINT and exits at once at the second. Returns what takes the
 * handlers away again.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => void): () => void {
  let firstAt: number | null = null;
  const handle = (signal: NodeJS.Signals): void => {
    const now = monotonicMicros();
    if (firstAt === null) {
      firstAt = now;
      stop(signal);
    } else if (now - firstAt > SAME_SIGNAL_WITHIN) process.exit(EXIT.interrupted);
  };
  process.on('SIGTERM', handle);
  process.on('SIGINT', handle);
  return () => {
    process.off('SIGTERM', handle);
    process.off('SIGINT', handle);
  };
}
