import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Why a job has no result: it took too long, it took too much memory, or the process was closed. */
export type Undone = 'time' | 'memory' | 'closed';

/** The job was given up; what it would have answered is not known. */
export class JobUndone extends Error {
  override readonly name = 'JobUndone';
  constructor(readonly why: Undone) {
    super(`the job was given up: ${why}`);
  }
}

export interface JobProcessOptions {
  /** The module that the process runs: it serves jobs by `serveJobs` (job-server.ts). */
  readonly module: URL;
  /** Of one job; one that takes longer ends with its process. The start of the process does not count: on a busy machine it can take seconds, which are no fault of the job. */
  readonly timeLimitMs: number;
  /** Heap of the process; a job that wants more ends with it. */
  readonly memoryLimitMb: number;
  /** How long the process stays without a job; default 60 s. The next job starts another one. */
  readonly idleMs?: number;
}

/** What the process answers a job: its result, or the error it threw. */
export type JobAnswer<Result> = { readonly result: Result } | { readonly error: unknown };

/** What the process says first, once it has loaded what it needs. */
export const PROCESS_READY = { ready: true } as const;

/** For the process to say that it is ready; none that can work at all needs as long. */
const START_LIMIT_MS = 60_000;
const IDLE_MS = 60_000;

interface Pending<Job, Result> {
  readonly job: Job;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One process that does jobs, one after another, away from the event loop. It starts with the first job, never keeps
 * this process alive, and is ended and replaced when a job goes past a limit: nothing else ends a loop. It is no thread,
 * since a thread that runs out of memory takes the whole process with it (always on Node 24, at times on others). Who
 * calls bounds how many jobs wait.
 */
export class JobProcess<Job, Result> {
  readonly #options: JobProcessOptions;
  readonly #waiting: Pending<Job, Result>[] = [];
  #child: ChildProcess | null = null;
  #current: Pending<Job, Result> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: JobProcessOptions) {
    this.#options = options;
  }

  /** Jobs that are waiting or being done. */
  get size(): number {
    return this.#waiting.length + (this.#current === null ? 0 : 1);
  }

  /** Resolves with what the process makes of the job; rejects with a JobUndone, or with the error of the job. */
  run(job: Job): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      this.#next();
    });
  }

  /** Gives up what is being done and what waits; returns when the process is gone. */
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
    if (next === undefined) {
      this.#after(this.#options.idleMs ?? IDLE_MS, () => void this.#end());
      this.#timer?.unref();
      return;
    }
    this.#current = next;
    if (this.#child !== null) this.#begin(this.#child, next.job);
    else {
      this.#after(START_LIMIT_MS, () => void this.#giveUp(new JobUndone('time')));
      this.#child = this.#start(next.job);
    }
  }

  #begin(child: ChildProcess, job: Job): void {
    this.#after(this.#options.timeLimitMs, () => void this.#giveUp(new JobUndone('time')));
    // One that ends meanwhile says so by its exit.
    child.send(job as object, () => undefined);
  }

  #after(limitMs: number, act: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, limitMs);
  }

  /** Begins with the job when the process is ready. */
  #start(first: Job): ChildProcess {
    const child = fork(fileURLToPath(this.#options.module), {
      execArgv: [...process.execArgv, `--max-old-space-size=${this.#options.memoryLimitMb}`],
      // It needs none of the settings, some of which are secrets.
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.unref();
    child.channel?.unref();
    // What a process says that was given up is nobody's answer.
    const whileIts = (act: () => void): void => {
      if (this.#child === child) act();
    };
    child.on('message', (said: JobAnswer<Result> | typeof PROCESS_READY) =>
      whileIts(() => ('ready' in said ? this.#begin(child, first) : this.#settle(said))),
    );
    child.on('error', (error) => whileIts(() => void this.#giveUp(error)));
    child.on('exit', (code, signal) => whileIts(() => void this.#giveUp(endedByItself(code, signal))));
    return child;
  }

  #settle(answer: JobAnswer<Result>): void {
    clearTimeout(this.#timer);
    const done = this.#current;
    this.#current = null;
    if ('error' in answer) done?.reject(answer.error);
    else done?.resolve(answer.result);
    this.#next();
  }

  /** Ends the process with its job; the next job gets a new one. */
  async #giveUp(why: Error): Promise<void> {
    const ended = this.#end();
    this.#settle({ error: why });
    await ended;
  }

  async #end(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}

/** Node aborts when its heap is full, and the kernel kills who takes the memory of all. */
function endedByItself(code: number | null, signal: NodeJS.Signals | null): Error {
  if (signal === 'SIGABRT' || signal === 'SIGKILL' || code === 134) return new JobUndone('memory');
  return new Error(`the process of the jobs ended by itself (${signal ?? code})`);
}
