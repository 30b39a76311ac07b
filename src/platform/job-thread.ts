import { Worker } from 'node:worker_threads';

/** Why a job has no result: it took too long, it took too much memory, or the thread was closed. */
export type Undone = 'time' | 'memory' | 'closed';

/** The job was given up; what it would have answered is not known. */
export class JobUndone extends Error {
  override readonly name = 'JobUndone';
  constructor(readonly why: Undone) {
    super(`the job was given up: ${why}`);
  }
}

export interface JobThreadOptions {
  /** The module that the thread runs: it says that it is ready, and then answers each job that it is posted. */
  readonly module: URL;
  /** Of one job; one that takes longer ends with its thread. The start of the thread does not count: on a busy machine it can take seconds, which are no fault of the job. */
  readonly timeLimitMs: number;
  /** Heap of the thread; a job that wants more ends with it. */
  readonly memoryLimitMb: number;
}

/** What the thread answers a job: its result, or the error it threw. */
export type JobAnswer<Result> = { readonly result: Result } | { readonly error: unknown };

/** What the thread says first, once it has loaded what it needs. */
export const THREAD_READY = { ready: true } as const;

/** For the thread to say that it is ready; no thread that can work at all needs as long. */
const START_LIMIT_MS = 60_000;

interface Pending<Job, Result> {
  readonly job: Job;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One thread that does jobs, one after another, away from the event loop. It starts with the first job,
 * never keeps the process alive, and is ended and replaced when a job goes past a limit: nothing else
 * ends a loop. Who calls bounds how many jobs wait.
 */
export class JobThread<Job, Result> {
  readonly #options: JobThreadOptions;
  readonly #waiting: Pending<Job, Result>[] = [];
  #worker: Worker | null = null;
  #current: Pending<Job, Result> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: JobThreadOptions) {
    this.#options = options;
  }

  /** Jobs that are waiting or being done. */
  get size(): number {
    return this.#waiting.length + (this.#current === null ? 0 : 1);
  }

  /** Resolves with what the thread makes of the job; rejects with a JobUndone, or with the error of the job. */
  run(job: Job): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      this.#next();
    });
  }

  /** Gives up what is being done and what waits; returns when the thread is gone. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const pending of this.#waiting.splice(0)) pending.reject(new JobUndone('closed'));
    await this.#giveUp(new JobUndone('closed'));
  }

  #next(): void {
    if (this.#closed) {
      for (const pending of this.#waiting.splice(0)) pending.reject(new JobUndone('closed'));
      return;
    }
    if (this.#current !== null) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#current = next;
    if (this.#worker !== null) this.#begin(this.#worker, next.job);
    else {
      this.#within(START_LIMIT_MS);
      this.#worker = this.#start(next.job);
    }
  }

  #begin(worker: Worker, job: Job): void {
    this.#within(this.#options.timeLimitMs);
    worker.postMessage(job);
  }

  #within(limitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#giveUp(new JobUndone('time')), limitMs);
  }

  /** Begins with the job when the thread is ready. */
  #start(first: Job): Worker {
    const worker = new Worker(this.#options.module, {
      resourceLimits: { maxOldGenerationSizeMb: this.#options.memoryLimitMb },
    });
    worker.unref();
    // What a thread says that was given up is nobody's answer.
    const whileIts = (act: () => void): void => {
      if (this.#worker === worker) act();
    };
    worker.on('message', (said: JobAnswer<Result> | typeof THREAD_READY) =>
      whileIts(() => ('ready' in said ? this.#begin(worker, first) : this.#settle(said))),
    );
    worker.on('error', (error: NodeJS.ErrnoException) =>
      whileIts(() => void this.#giveUp(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new JobUndone('memory') : error)),
    );
    worker.on('exit', (code) => whileIts(() => void this.#giveUp(new Error(`the thread ended by itself (${code})`))));
    return worker;
  }

  #settle(answer: JobAnswer<Result>): void {
    clearTimeout(this.#timer);
    const done = this.#current;
    this.#current = null;
    if ('error' in answer) done?.reject(answer.error);
    else done?.resolve(answer.result);
    this.#next();
  }

  /** Ends the thread with its job; the next job gets a new one. */
  async #giveUp(why: Error): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    this.#settle({ error: why });
    await worker?.terminate();
  }
}
