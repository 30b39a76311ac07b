import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from './coordinator.js';

const SCRIPT = fileURLToPath(new URL('runner-process.mjs', import.meta.url));

interface Told {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
  readonly reason?: string;
}

/** What happened to a lease, as the process told it. */
export interface ToldEvent {
  readonly event: string;
  readonly lease: string;
  readonly error?: Told;
  readonly remainingMs?: number;
  readonly resources?: readonly string[];
  readonly resource?: string;
}

/** An agent run as an operating-system process: the runner kit as it is built, to be stopped, continued and killed. */
export class RunnerProcess {
  readonly events: ToldEvent[] = [];
  private readonly waiting = new Map<number, (answer: { result?: never; error?: Told }) => void>();
  private asked = 0;
  private errors = '';

  private constructor(private readonly child: ReturnType<typeof spawnIt>) {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as ToldEvent & { id?: number };
      if (message.id === undefined) this.events.push(message);
      else this.waiting.get(message.id)?.(message as never);
    });
    child.on('exit', (code, signal) => {
      const error = { name: 'Error', message: `the runner ended (${code ?? signal}): ${this.errors}` };
      for (const answer of this.waiting.values()) answer({ error });
    });
  }

  static start(env: {
    readonly WRIT_ENDPOINTS: string;
    readonly WRIT_TOKEN: string;
    readonly [name: string]: string;
  }): RunnerProcess {
    return new RunnerProcess(spawnIt(env));
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Rejects with what the kit threw, by its name, code and reason. */
  async ask<T = Record<string, unknown>>(command: string, details: object = {}): Promise<T> {
    this.asked += 1;
    const id = this.asked;
    const answered = new Promise<{ result?: T; error?: Told }>((resolve) => this.waiting.set(id, resolve as never));
    this.child.stdin.write(`${JSON.stringify({ id, command, ...details })}\n`);
    const { result, error } = await answered;
    this.waiting.delete(id);
    if (error !== undefined) throw Object.assign(new Error(error.message), error);
    return result as T;
  }

  /** Resolves with the first such event, also one that came before. */
  async heard(event: string, lease?: string): Promise<ToldEvent> {
    const find = () => this.events.find((one) => one.event === event && (lease === undefined || one.lease === lease));
    return (await eventually(find, (found) => found !== undefined, 40_000)) as ToldEvent;
  }

  /** Resolves when the kernel says that it stands still. */
  async standsStill(): Promise<void> {
    const state = () => readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1]?.[0];
    await eventually(state, (seen) => seen === 'T');
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}

function spawnIt(env: Readonly<Record<string, string>>) {
  return spawn(process.execPath, [SCRIPT], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}
