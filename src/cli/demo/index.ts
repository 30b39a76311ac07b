import { monotonicMicros } from '../../platform/clock.js';
import { inSeconds, Narrator, UnmetExpectation } from './narrate.js';
import { authority } from './scene-authority.js';
import { lateWrite } from './scene-late-write.js';
import { auditLog } from './scene-log.js';
import { overlap } from './scene-overlap.js';
import { versions } from './scene-versions.js';
import { Stage } from './stage.js';

/**
 * `writ demo`: Writ's main job on real processes, told in plain words. It believes nothing that it has not observed: it
 * returns 0 only if every fact was, and 1 at the first that was not. However it ends, it takes away what it started.
 */

/** Far more than it needs; only a story that hangs gets there. */
const PATIENCE_MS = 150_000;

const EXIT = { observed: 0, notObserved: 1 } as const;
const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

/** Somebody wants it to end. */
class Interrupted extends Error {
  constructor(
    message: string,
    readonly exitCode: number,
  ) {
    super(message);
  }
}

export async function runDemo(): Promise<number> {
  const narrator = new Narrator(process.stdout);
  const interruption = watchForInterruption();
  const begun = monotonicMicros();
  const stage = await Stage.open();
  let code: number = EXIT.observed;
  const story = play(stage, narrator);
  try {
    await Promise.race([story, interruption.happens]);
  } catch (error) {
    code = await tell(error, stage, narrator);
  }
  await stage.close(story);
  const left = await stage.processes.running();
  if (left.length > 0) {
    narrator.failed(`Still running: ${left.join(', ')}.`);
    code = EXIT.notObserved;
  }
  interruption.stopWatching();
  if (code === EXIT.observed) {
    const took = inSeconds((monotonicMicros() - begun) / 1_000);
    narrator.title(`All ${narrator.observed} facts were observed, in ${took}. Nothing is left running.`);
  }
  return code;
}

async function play(stage: Stage, narrator: Narrator): Promise<void> {
  narrator.title('Writ: ownership that the receiving service can check');
  narrator.say('Everything below happens now, between real processes. What is marked "observed" was checked.');
  narrator.facts(await stage.start());
  await overlap(stage, narrator);
  await lateWrite(stage, narrator);
  await versions(stage, narrator);
  await authority(stage, narrator);
  await auditLog(stage, narrator);
}

async function tell(error: unknown, stage: Stage, narrator: Narrator): Promise<number> {
  narrator.stop();
  if (error instanceof Interrupted) {
    narrator.failed(error.message);
    return error.exitCode;
  }
  if (error instanceof UnmetExpectation) narrator.unmet(error);
  else narrator.failed(`The demo could not go on: ${error instanceof Error ? error.message : String(error)}`);
  const trouble = await stage.trouble();
  if (trouble !== '') narrator.failed(trouble);
  return EXIT.notObserved;
}

interface Interruption {
  /** Rejects when it happens. */
  readonly happens: Promise<never>;
  stopWatching(): void;
}

/** A signal (also several: a terminal and npm may both send one), a reader that went away, or too long a time. */
function watchForInterruption(): Interruption {
  let interrupt: (reason: Interrupted) => void = () => undefined;
  const happens = new Promise<never>((_, reject) => {
    interrupt = reject;
  });
  happens.catch(() => undefined);
  const onSignal = (signal: NodeJS.Signals) => {
    interrupt(
      new Interrupted(
        `Interrupted by ${signal}. Everything that was started is being ended.`,
        128 + (SIGNALS[signal as keyof typeof SIGNALS] ?? 0),
      ),
    );
  };
  // For other commands a reader that went away is a good end; this one has to clean up, and has not observed all.
  const others = process.stdout.rawListeners('error') as ((error: Error) => void)[];
  let isBroken = false;
  const onBrokenPipe = () => {
    isBroken = true;
    interrupt(new Interrupted('Nobody reads this any more.', EXIT.notObserved));
  };
  const timer = setTimeout(
    () => interrupt(new Interrupted(`Not done after ${PATIENCE_MS / 1_000} s.`, EXIT.notObserved)),
    PATIENCE_MS,
  ).unref();
  for (const signal of Object.keys(SIGNALS)) process.on(signal, onSignal);
  process.stdout.removeAllListeners('error').on('error', onBrokenPipe);
  return {
    happens,
    stopWatching() {
      clearTimeout(timer);
      for (const signal of Object.keys(SIGNALS)) process.off(signal, onSignal);
      // Ours stays where it is needed: the next write would fail again.
      if (isBroken) return;
      process.stdout.off('error', onBrokenPipe);
      for (const listener of others) process.stdout.on('error', listener);
    },
  };
}
