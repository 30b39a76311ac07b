import { constants } from 'node:os';
import { signalExit } from '../exit-codes.js';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/**
 * What to do when `writ exec` or `lease acquire` is told to stop: before a command runs, give up what is under way;
 * afterwards, pass the signal on and let the command decide.
 */
export class Interrupts {
  private readonly aborter = new AbortController();
  private forward: ((signal: NodeJS.Signals) => void) | undefined;
  private first: NodeJS.Signals | undefined;

  private readonly listener = (signal: NodeJS.Signals): void => {
    this.first ??= signal;
    if (this.forward === undefined) this.aborter.abort(new Error(`interrupted by ${signal}`));
    else this.forward(signal);
  };

  /** Stopped by Ctrl-Z it could not renew, nor end a command that goes on in its own session. */
  private readonly refuse = (): void =>
    this.say?.('writ: it cannot be suspended: the lease would end while the command goes on.');

  /** `say` tells that it cannot be suspended; without it, it can. */
  constructor(private readonly say?: (text: string) => void) {
    for (const name of FORWARDED) process.on(name, this.listener);
    if (say !== undefined) process.on('SIGTSTP', this.refuse);
  }

  /** Aborts when a signal came before the command ran. */
  get signal(): AbortSignal {
    return this.aborter.signal;
  }

  /** 128 and the number of the signal; undefined when none came. */
  get exitCode(): number | undefined {
    return this.first === undefined ? undefined : signalExit(constants.signals[this.first]);
  }

  passTo(forward: (signal: NodeJS.Signals) => void): void {
    this.forward = forward;
    // It came while the command was being started.
    if (this.first !== undefined) forward(this.first);
  }

  dispose(): void {
    for (const name of FORWARDED) process.off(name, this.listener);
    process.off('SIGTSTP', this.refuse);
  }
}
