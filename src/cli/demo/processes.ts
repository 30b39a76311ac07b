import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Reply } from './program.js';
import { type Inventory, identify, isRunning, type StartedProcess, stateOf, tidy } from './tidy.js';

const POLL_MS = 10;
const READY_TIMEOUT_MS = 60_000;
const ANSWER_TIMEOUT_MS = 45_000;
const END_TIMEOUT_MS = 15_000;
const LOG_TAIL_BYTES = 2_000;

/** Waits for a condition, not for a time. */
export async function until(
  what: string,
  condition: () => Promise<boolean> | boolean,
  withinMs = 20_000,
): Promise<void> {
  const expires = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > expires) throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    await pause(POLL_MS);
  }
}

/** A program of Writ or of the demo, compiled: its path seen from here. */
function programPath(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}

export interface ProgramOptions {
  readonly name: string;
  /** Relative to this directory. */
  readonly program: string;
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** A program that ran to its end. */
export interface Ended {
  /** `exit code 0`, or the signal that ended it. */
  readonly ending: string;
  readonly output: string;
  /** What it wrote to stderr. */
  readonly complaints: string;
}

/**
 * All processes that the demo starts. Each is known to a caretaker as well, a process that ends what is left should the
 * demo itself be killed.
 */
export class Processes {
  private readonly children: Child[] = [];
  private caretaker: Child | undefined;
  private closed = false;

  constructor(private readonly directory: string) {}

  /** To be called first: from now on nothing is left behind. */
  async openCaretaker(): Promise<void> {
    const spawned = await this.spawn({ name: 'caretaker', program: './caretaker.js' }, true);
    this.caretaker = spawned;
    this.tellCaretaker();
  }

  async start(options: ProgramOptions): Promise<Child> {
    if (this.closed) throw new Error(`the demo is ending, so ${options.name} is not started`);
    const child = await this.spawn(options, false);
    this.children.push(child);
    this.tellCaretaker();
    // Asked to end while it was being started.
    if (this.closed) await child.end();
    return child;
  }

  /** Ends all, with signals that let them end well first, then without; takes the directory away. Safe to repeat. */
  async end(): Promise<void> {
    await this.endChildren();
    await tidy(this.inventory());
    await this.caretaker?.hangUp();
  }

  /** Ends all programs, and starts no further one; what they have in common with others stays. */
  async endChildren(): Promise<void> {
    this.closed = true;
    await Promise.all(this.children.map((child) => child.end()));
  }

  /** Ids of processes that were started and still run. */
  async running(): Promise<number[]> {
    const all = [...this.children, ...(this.caretaker === undefined ? [] : [this.caretaker])];
    const found = await Promise.all(all.map(async (child) => ((await isRunning(child.process)) ? [child.pid] : [])));
    return found.flat();
  }

  private inventory(): Inventory {
    return { directory: this.directory, processes: this.children.map((child) => child.process) };
  }

  private tellCaretaker(): void {
    this.caretaker?.write(this.inventory());
  }

  /** Runs a program to its end. */
  async run(options: ProgramOptions): Promise<Ended> {
    return (await this.start(options)).toEnd();
  }

  private async spawn({ name, program, args = [], environment }: ProgramOptions, ownSession: boolean): Promise<Child> {
    const logFile = join(this.directory, `${name.replaceAll(' ', '-')}.log`);
    const log = await open(logFile, 'a', 0o600);
    try {
      // Nothing of the caller's environment: a WRIT_DATABASE_URL there would let the demo play on somebody's database.
      const handle = spawn(process.execPath, [programPath(program), ...args], {
        env: { TMPDIR: this.directory, ...environment },
        stdio: ['pipe', 'pipe', log.fd],
        detached: ownSession,
      });
      await once(handle, 'spawn');
      return new Child(name, handle, await identify(handle.pid ?? 0), logFile);
    } finally {
      await log.close();
    }
  }
}

/** One of them. */
export class Child {
  private readonly waiting: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  private readonly unread: string[] = [];
  private hasEnded: string | undefined;
  private readonly ended: Promise<void>;

  constructor(
    readonly name: string,
    private readonly handle: ChildProcess,
    readonly process: StartedProcess,
    private readonly logFile: string,
  ) {
    this.ended = new Promise((resolve) => {
      // Not `exit`: what it has printed should have been read by then.
      handle.once('close', (code, signal) => {
        this.hasEnded = signal ?? `exit code ${code}`;
        resolve();
        for (const waiter of this.waiting.splice(0)) waiter.reject(this.gone());
      });
    });
    // What is written to one that has just ended is lost, and that it has ended is told elsewhere.
    handle.stdin?.on('error', () => undefined);
    if (handle.stdout !== null) createInterface({ input: handle.stdout }).on('line', (line) => this.heard(line));
  }

  /** How it ended, and what it had printed and nobody had read. */
  async toEnd(): Promise<Ended> {
    await this.ended;
    return { ending: this.hasEnded ?? '', output: this.unread.splice(0).join('\n'), complaints: await this.logTail() };
  }

  get pid(): number {
    return this.process.pid;
  }

  /** How it ended; undefined while it runs. */
  get ending(): string | undefined {
    return this.hasEnded;
  }

  write(value: unknown): void {
    this.handle.stdin?.write(`${JSON.stringify(value)}\n`);
  }

  /** The next line it prints, parsed. */
  async nextLine<T>(withinMs = READY_TIMEOUT_MS): Promise<T> {
    const line = await this.awaitLine(withinMs);
    return JSON.parse(line) as T;
  }

  /** Gives a program of the demo its configuration and waits until it is ready. */
  configure<T>(config: object): Promise<T> {
    this.write(config);
    return this.nextLine<T>();
  }

  /** Sends a command and waits for the answer. */
  async ask<Answer>(command: object): Promise<Answer> {
    this.write(command);
    const reply = await this.nextLine<Reply<Answer>>(ANSWER_TIMEOUT_MS);
    if ('failed' in reply) throw new Error(`${this.name}: ${reply.failed}`);
    return reply.ok;
  }

  /** Makes it stand still, as a laptop that sleeps or a machine that is out of memory does, and waits until it does. */
  async pause(): Promise<void> {
    this.handle.kill('SIGSTOP');
    await until(`${this.name} stands still`, async () => {
      const state = await stateOf(this.pid);
      return state === undefined || state === 'T';
    });
  }

  resume(): void {
    this.handle.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.handle.kill('SIGKILL');
    await this.ended;
  }

  /** Asks it to end, and ends it when it does not. */
  async end(): Promise<void> {
    if (this.hasEnded !== undefined) return;
    this.handle.kill('SIGCONT');
    this.handle.stdin?.end();
    this.handle.kill('SIGTERM');
    if (!(await this.endsWithin(END_TIMEOUT_MS))) await this.kill();
  }

  /** Closes its stdin and waits for it to end by itself. */
  async hangUp(): Promise<void> {
    this.handle.stdin?.end();
    if (!(await this.endsWithin(END_TIMEOUT_MS))) await this.kill();
  }

  /** The end of what it wrote to stderr, for people. */
  async logTail(): Promise<string> {
    const text = await readFile(this.logFile, 'utf8').catch(() => '');
    return text.slice(-LOG_TAIL_BYTES).trim();
  }

  private async endsWithin(ms: number): Promise<boolean> {
    const timer = new AbortController();
    const late = pause(ms, false, { signal: timer.signal }).catch(() => false);
    const inTime = await Promise.race([this.ended.then(() => true), late]);
    timer.abort();
    return inTime;
  }

  private heard(line: string): void {
    const waiter = this.waiting.shift();
    if (waiter === undefined) this.unread.push(line);
    else waiter.resolve(line);
  }

  private awaitLine(withinMs: number): Promise<string> {
    const line = this.unread.shift();
    if (line !== undefined) return Promise.resolve(line);
    if (this.hasEnded !== undefined) return Promise.reject(this.gone());
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`${this.name} (pid ${this.pid}) said nothing for ${withinMs} ms`));
      const timer = setTimeout(late, withinMs);
      const done =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          settle(value);
        };
      this.waiting.push({ resolve: done(resolve), reject: done(reject) });
    });
  }

  private gone(): Error {
    return new Error(`${this.name} (pid ${this.pid}) has ended: ${this.hasEnded}`);
  }
}
