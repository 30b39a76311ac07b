import { createInterface } from 'node:readline';

/**
 * How the demo talks to the programs it starts: one JSON value a line. The first line on stdin is the program's
 * configuration (secrets do not belong on a command line, where every user can read them), each further one is a
 * command; stdout answers each with one line. A program ends when its stdin ends, so that none outlives the demo.
 */

/** A program that has started. */
export interface Running<Command, Answer> {
  /** What it says when it is ready. */
  readonly ready: object;
  readonly handle: (command: Command) => Promise<Answer>;
  readonly stop: () => Promise<void>;
}

/** An answer on the wire. */
export type Reply<Answer> = { readonly ok: Answer } | { readonly failed: string };

/** Runs a program to its end; `start` gets the configuration. */
export async function runProgram<Config, Command, Answer>(
  start: (config: Config) => Promise<Running<Command, Answer>>,
): Promise<void> {
  const reader = createInterface({ input: process.stdin });
  const lines = reader[Symbol.asyncIterator]();
  // The demo decides when this ends, also when Ctrl-C reaches the whole group of processes.
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', () => reader.close());
  const first = await lines.next();
  if (first.done === true) return;
  const program = await start(JSON.parse(first.value) as Config);
  // At once, also when a command is still under way: nobody waits for its answer any more.
  reader.once('close', () => void program.stop().finally(() => process.exit()));
  say(program.ready);
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
    say(await reply(program, JSON.parse(line.value) as Command));
  }
}

async function reply<Command, Answer>(program: Running<Command, Answer>, command: Command): Promise<Reply<Answer>> {
  try {
    return { ok: await program.handle(command) };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

function say(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}
