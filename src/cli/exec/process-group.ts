import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { CliError } from '../cli.js';
import type { Environment } from '../environment.js';
import { EXIT, signalExit } from '../exit-codes.js';

const POLL_MS = 50;
/** SIGKILL takes effect at once, except for a process stuck in the kernel. */
const KILL_PATIENCE_MS = 2_000;

/**
 * A command with all that it starts, in a process group of its own: a signal to the group also reaches grandchildren,
 * which a signal to the command would leave running. The group is a session, too, so Ctrl-C at a terminal reaches only
 * `writ`, which passes it on once.
 */
export class ProcessGroup {
  private constructor(
    private readonly child: ChildProcess,
    private readonly groupId: number,
    /** The command's exit code: its own, or 128 and the signal's number. */
    readonly exited: Promise<number>,
  ) {}

  /** Starts a command with our standard streams. Throws a CliError that says, by its code, what shells would say. */
  static async start(command: readonly string[], env: Environment): Promise<ProcessGroup> {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { stdio: 'inherit', detached: true, env: { ...env } });
    const exited = new Promise<number>((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signalExit(constants.signals[signal ?? 'SIGKILL'])));
    });
    try {
      await once(child, 'spawn');
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') throw new CliError(EXIT.noCommand, `There is no command ${file}.`);
      throw new CliError(EXIT.notExecutable, `${file} cannot be executed: ${message}`);
    }
    // Errors after the start are failed kills of a process that has gone.
    child.on('error', () => undefined);
    return new ProcessGroup(child, child.pid ?? 0, exited);
  }

  signal(name: NodeJS.Signals): void {
    try {
      process.kill(-this.groupId, name);
    } catch {
      // Nobody is left.
    }
  }

  /** SIGTERM, and SIGKILL for what is left after the grace. Returns when nothing of it runs any more. */
  async end(graceMs: number): Promise<void> {
    this.signal('SIGTERM');
    if (await this.endsWithin(graceMs)) return;
    this.signal('SIGKILL');
    await this.endsWithin(KILL_PATIENCE_MS);
  }

  /** Whether something of the group still runs. */
  async isRunning(): Promise<boolean> {
    if (this.child.exitCode === null && this.child.signalCode === null) return true;
    try {
      process.kill(-this.groupId, 0);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
    return hasLiveMember(this.groupId);
  }

  private async endsWithin(ms: number): Promise<boolean> {
    const giveUpAt = performance.now() + ms;
    while (await this.isRunning()) {
      if (performance.now() >= giveUpAt) return false;
      await pause(POLL_MS);
    }
    return true;
  }
}

/** A group of zombies can still be signalled; in a container whose first process does not reap they stay for ever. */
async function hasLiveMember(groupId: number): Promise<boolean> {
  const entries = await readdir('/proc').catch(() => null);
  if (entries === null) return true;
  for (const entry of entries) {
    if (!/^\d+$/.test(entry)) continue;
    const line = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '');
    // After the name in brackets, which may contain anything: state, parent, group.
    const [state, , group] = line.slice(line.lastIndexOf(')') + 2).split(' ');
    if (Number(group) === groupId && state !== 'Z' && state !== 'X') return true;
  }
  return false;
}
