import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Violation } from '../history.js';
import { nothingMissing, type Scenario, type ScenarioResult, type Setting } from './scenario.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

interface TestReport {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly status: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

/** A case that tests of the suite cover, against running coordinators or the parts themselves: they are run. */
export function coveredBy(
  id: string,
  title: string,
  files: readonly string[],
  pattern = '',
  env: (setting: Setting) => Readonly<Record<string, string>> = () => ({}),
): Scenario {
  return {
    id,
    title,
    missing: nothingMissing,
    run: (setting) => runTests(setting, id, files, pattern, { WRIT_SEED: String(setting.seed), ...env(setting) }),
  };
}

/** Runs test files by vitest; each that fails is a violation. */
export async function runTests(
  { stage }: Setting,
  id: string,
  files: readonly string[],
  pattern: string,
  env: Readonly<Record<string, string>>,
): Promise<ScenarioResult> {
  const report = join(await stage.directory('report'), 'report.json');
  const filter = pattern === '' ? [] : ['-t', pattern];
  const args = ['run', ...files, ...filter, '--reporter=json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4_000);
  });
  const ended = once(child, 'exit');
  stage.add(`tests of ${id}`, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await ended;
  });
  await ended;
  const text = await readFile(report, 'utf8').catch(() => '');
  if (text === '') throw new Error(`vitest made no report:\n${errors}`);
  const { numPassedTests, testResults } = JSON.parse(text) as TestReport;
  const violations = testResults.flatMap(({ name, message, status, assertionResults }) => {
    const failed = assertionResults.filter((one) => one.status === 'failed');
    if (failed.length === 0 && status === 'failed') return [violation(id, `${name}: ${message}`)];
    return failed.map(({ fullName, failureMessages }) =>
      violation(id, `${name}: ${fullName}: ${failureMessages[0] ?? ''}`),
    );
  });
  if (numPassedTests === 0 && violations.length === 0) violations.push(violation(id, `no test was run:\n${errors}`));
  const history = { calls: [], readings: [], outages: [], losses: [], log: [] };
  return { answers: 0, tests: numPassedTests, violations, history };
}

function violation(id: string, what: string): Violation {
  return { promise: id, what, calls: [], revisions: [], about: [] };
}
