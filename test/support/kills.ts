import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../harness/random.js';
import type { CoordinatorProcess } from './coordinator-process.js';

/** What tests share that kill a coordinator or its Postgres under load (P8). */

/** A load that has begun: its first answer, and all that it was told in the end. */
export interface Load<T> {
  readonly firstAnswer: Promise<unknown>;
  readonly told: Promise<T[]>;
}

/** Begins a load; each worker calls `answered` when it was told something. */
export function beginLoad<T>(workers: readonly ((answered: () => void) => Promise<T[]>)[]): Load<T> {
  let answered = (): void => undefined;
  const first = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const told = Promise.all(workers.map((work) => work(answered))).then((all) => all.flat());
  return { firstAnswer: Promise.race([first, told]), told };
}

/** A random moment of a load that is under way, however slow the machine is: the instant of the kill is what varies. */
export async function someMomentOf({ firstAnswer }: Load<unknown>, random: Random): Promise<void> {
  await firstAnswer;
  await pause(random.between(0, 250));
}

/** Kills the embedded Postgres of a data directory. */
export function killPostgres(dataDir: string): void {
  const pid = Number(readFileSync(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8').split('\n')[0]);
  process.kill(pid, 'SIGKILL');
}

const ANSWERS_WITHIN_MS = 30_000;

/** Asks until there is an answer; fails with what the coordinator has logged. */
export async function untilAnswered<T>(coordinator: CoordinatorProcess, ask: () => Promise<T>): Promise<T> {
  const until = performance.now() + ANSWERS_WITHIN_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > until)
        throw new Error(`not ready after a kill:\n${coordinator.log().slice(-5_000)}`, { cause: error });
    }
  }
}
