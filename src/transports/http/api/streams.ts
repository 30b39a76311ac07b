import { routePath } from 'hono/route';
import { Fault } from '../../../domain/fault.js';
import { NO_STORE } from '../problem.js';
import type { RouteContext } from '../route.js';

/**
 * Answers that go on: what there is to say is asked for whenever the reader has taken what was said before, and so a
 * slow one holds up nothing, and nothing piles up for it. One that takes nothing for a while is let go.
 */

/** What is told. */
export interface StreamSource {
  /** The next part, as soon as there is one; null: that was all. Rejects with what ends the stream. */
  next(): Promise<string | null>;
  /** Idempotent. */
  close(): void;
}

export interface StreamOptions {
  readonly type: string;
  readonly source: StreamSource;
  /** Said when there was nothing to say for a while; null: nothing. */
  readonly idle: string | null;
  /** Said at an end that is not the end of what there is; null: the connection breaks, as half an answer must not look whole. */
  readonly farewell: ((fault: Fault) => string) | null;
  /** Throws, or rejects with, what ends the stream when its caller may not listen any more. */
  readonly look: () => Promise<void>;
  /** Told of what failed in the coordinator. */
  readonly trouble: (route: string, error: unknown) => void;
}

const IDLE_MS = 15_000;
const LOOK_EVERY_MS = 1_000;
/** As on streams of gRPC. */
const MAX_BLOCKED_MS = 10_000;
/** For the farewell to be read. */
const FAREWELL_MS = 2_000;

const utf8 = new TextEncoder();

/** All streams of a server. */
export class Streams {
  readonly #open = new Set<LiveStream>();

  get size(): number {
    return this.#open.size;
  }

  /** Answers with a stream until its source or its caller ends, or somebody ends all. */
  serve(c: RouteContext, options: StreamOptions): Response {
    const headers = { ...NO_STORE, 'content-type': options.type, 'x-accel-buffering': 'no' };
    if (c.req.method === 'HEAD') {
      options.source.close();
      return c.body(null, 200, headers);
    }
    const stream = new LiveStream(options, {
      gone: c.req.raw.signal,
      breakOff: () => {
        if (!c.env.outgoing.writableFinished) c.env.outgoing.destroy();
      },
      ended: () => this.#open.delete(stream),
      trouble: (error) => options.trouble(routePath(c), error),
    });
    this.#open.add(stream);
    return c.body(stream.body, 200, headers);
  }

  /** Says farewell to all: they go on elsewhere. */
  endAll(fault: Fault): void {
    for (const stream of this.#open) stream.end(fault);
  }
}

interface Surroundings {
  readonly gone: AbortSignal;
  readonly breakOff: () => void;
  readonly ended: () => void;
  readonly trouble: (error: unknown) => void;
}

class LiveStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: StreamOptions;
  readonly #around: Surroundings;
  readonly #looking: NodeJS.Timeout;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #pending: Promise<string | null> | undefined;
  #patience: NodeJS.Timeout | undefined;
  #isOver = false;
  #over: () => void = () => undefined;

  constructor(options: StreamOptions, around: Surroundings) {
    this.#options = options;
    this.#around = around;
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => this.#close(),
    });
    this.#looking = setInterval(() => void this.#look(), LOOK_EVERY_MS).unref();
    around.gone.addEventListener('abort', () => this.#close(), { once: true });
  }

  /** Idempotent. */
  end(error: unknown): void {
    if (this.#isOver) return;
    const fault = faultOf(error);
    if (fault.faultClass === 'internal') this.#around.trouble(error);
    const { farewell } = this.#options;
    if (farewell === null) this.#around.breakOff();
    else {
      this.#controller?.enqueue(utf8.encode(farewell(fault)));
      this.#controller?.close();
      // Whoever reads nothing does not read this either.
      setTimeout(this.#around.breakOff, FAREWELL_MS).unref();
    }
    this.#close();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    clearTimeout(this.#patience);
    try {
      const part = await this.#next();
      if (this.#isOver) return;
      if (part === null) {
        controller.close();
        this.#close();
        return;
      }
      controller.enqueue(utf8.encode(part));
      this.#patience = setTimeout(() => this.end(slowReader()), MAX_BLOCKED_MS).unref();
    } catch (error) {
      this.end(error);
    }
  }

  /** What the source says, or that it has nothing to say. */
  async #next(): Promise<string | null> {
    const { source, idle } = this.#options;
    this.#pending ??= source.next();
    const over = new Promise<null>((resolve) => {
      this.#over = () => resolve(null);
    });
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<string>((resolve) => {
      if (idle !== null) timer = setTimeout(() => resolve(idle), IDLE_MS).unref();
    });
    const said = this.#pending.then((part) => {
      this.#pending = undefined;
      return part;
    });
    try {
      return await Promise.race([said, silence, over]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #look(): Promise<void> {
    try {
      await this.#options.look();
    } catch (error) {
      // Who cannot be found out now is looked at again.
      if (!(error instanceof Fault && error.faultClass === 'unavailable')) this.end(error);
    }
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#looking);
    clearTimeout(this.#patience);
    this.#pending?.catch(() => undefined);
    this.#options.source.close();
    this.#over();
    this.#around.ended();
  }
}

function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const text = 'internal error; the coordinator has logged the cause';
  return new Fault('internal', 'INTERNAL', text, { cause: error });
}

function slowReader(): Fault {
  return new Fault(
    'unavailable',
    'SLOW_READER',
    `the stream is ended, as its caller does not keep up: it has read nothing for ${MAX_BLOCKED_MS / 1_000} s. Open another one; nothing is lost by it.`,
  );
}
