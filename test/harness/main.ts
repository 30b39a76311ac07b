import type { History, Violation } from './history.js';
import { runMix } from './mix.js';
import { type Options, readOptions, USAGE, UsageError } from './options.js';
import { Random } from './random.js';
import { type Row, table, tell } from './report.js';
import { SCENARIOS, type Scenario } from './scenarios/index.js';
import { Stage } from './stage.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const ROUND_MS = 60_000;
/** What is being done is ended in order; a second signal does not wait. */
const stages = new Set<Stage>();

/** Runs what is asked for; the exit code: 0 if no promise was broken, 1 if one was, 2 if nothing could be run as asked. */
export async function main(args: readonly string[]): Promise<number> {
  let options: Options;
  try {
    options = readOptions(args, () => Math.floor(Math.random() * 2 ** 32));
    if (options.help) say(USAGE);
    if (options.help) return 0;
    const unknown = options.scenarios.filter((name) => !SCENARIOS.some(({ id }) => id === name));
    if (unknown.length > 0) throw new UsageError(`there is no scenario ${unknown.join(', ')}`);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}\n`);
    return 2;
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, async () => {
      for (const stage of stages) await stage.end();
      process.exit(130);
    });
  say(`seed ${options.seed}`);
  return options.minutes === null ? runScenarios(options) : runRounds(options.minutes, options.seed);
}

async function runRounds(minutes: number, seed: number): Promise<number> {
  let [answers, broken, rounds] = [0, 0, 0];
  const happened = new Map<string, number>();
  const ways = new Map<string, number>();
  for (const until = performance.now() + minutes * 60_000; performance.now() < until; rounds += 1) {
    const forMs = Math.min(ROUND_MS, until - performance.now());
    const nothing = { happened: new Map<string, number>(), ways: new Map<string, number>() };
    const result = await onStage((stage) => runMix(stage, seed + rounds, forMs)).catch((error: unknown) => ({
      ...crashed(error),
      ...nothing,
    }));
    answers += result.answers;
    broken += result.violations.length;
    count(happened, result.happened);
    count(ways, result.ways);
    say(`round of seed ${seed + rounds}: ${result.answers} answers checked, ${result.violations.length} violations`);
    await tell(`mix-${seed + rounds}`, result, say);
  }
  say(`\ninjected: ${[...happened].map(([name, times]) => `${name} ${times}×`).join(', ')}`);
  say(`of the answers: ${[...ways].map(([name, times]) => `${name} ${times}`).join(', ')}`);
  say(`${rounds} rounds, seeds ${seed} to ${seed + rounds - 1}: ${answers} answers checked, ${broken} violations`);
  return broken === 0 ? 0 : 1;
}

function count(all: Map<string, number>, more: ReadonlyMap<string, number>): void {
  for (const [name, times] of more) all.set(name, (all.get(name) ?? 0) + times);
}

async function runScenarios({ scenarios, seed, times, full }: Options): Promise<number> {
  const rows: Row[] = [];
  for (const scenario of SCENARIOS) {
    if (scenarios.length > 0 && !scenarios.includes(scenario.id)) continue;
    const row = await runScenario(scenario, seed, times, full);
    say(`${row.scenario} ${row.title}: ${row.skipped || `${row.checked} checked, ${row.violations} violations`}`);
    rows.push(row);
  }
  say(`\n${table(rows)}`);
  return rows.every(({ violations }) => violations === 0) ? 0 : 1;
}

async function runScenario(scenario: Scenario, seed: number, times: number, full: boolean): Promise<Row> {
  const { id, title } = scenario;
  const startedAt = performance.now();
  let skipped = scenario.missing();
  let [run, answers, tests, violations] = [0, 0, 0, 0];
  for (; skipped === '' && run < times; run += 1) {
    const result = await onStage((stage) =>
      scenario.run({ stage, random: new Random(seed + run), seed: seed + run, full }),
    ).catch(crashed);
    skipped = result.skipped ?? '';
    answers += result.answers;
    tests += result.tests ?? 0;
    violations += result.violations.length;
    for (const note of result.notes ?? []) say(`  ${id}: ${note}`);
    await tell(`${id}-${seed + run}`, result, say);
  }
  const checked = [answers > 0 ? `${answers} answers` : '', tests > 0 ? `${tests} tests` : ''].filter(
    (one) => one !== '',
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  return { scenario: id, title, times: run, checked: checked.join(', ') || '–', violations, skipped, seconds };
}

/** What could not be run to its end promises nothing, so it counts; the rounds after it are run all the same. */
function crashed(error: unknown): {
  answers: number;
  violations: Violation[];
  history: History;
  tests?: number;
  skipped?: string;
  notes?: string[];
} {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const violation = { promise: 'harness', what, calls: [], revisions: [], about: [] };
  return {
    answers: 0,
    violations: [violation],
    history: { calls: [], readings: [], outages: [], losses: [], log: [] },
  };
}

async function onStage<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = new Stage();
  stages.add(stage);
  try {
    return await work(stage);
  } finally {
    const stuck = await stage.end();
    stages.delete(stage);
    if (stuck.length > 0) process.stderr.write(`could not be ended:\n${stuck.join('\n')}\n`);
  }
}
