import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Call, History, Violation } from './history.js';
import { shrink } from './shrink.js';

/** A line of the table. */
export interface Row {
  readonly scenario: string;
  readonly title: string;
  readonly times: number;
  /** Answers that were held against the promises, or tests that passed. */
  readonly checked: string;
  readonly violations: number;
  /** Why it was not run; empty: it was. */
  readonly skipped: string;
  readonly seconds: number;
}

const SHOWN_VIOLATIONS = 5;
const SHOWN_CALLS = 30;
const DIRECTORY = 'test-results';

export function table(rows: readonly Row[]): string {
  const head = ['', 'scenario', 'run', 'checked', 'violations', 'seconds', 'skipped, why'];
  const body = rows.map(({ scenario, title, times, checked, violations, seconds, skipped }) => [
    scenario,
    title,
    String(times),
    checked,
    String(violations),
    seconds.toFixed(0),
    skipped,
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((line) => line[column]?.length ?? 0)));
  return [head, ...body]
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Violations, each with the part of the history that shows it; the whole history goes into a file. */
export async function tell(
  name: string,
  { violations, history }: { readonly violations: readonly Violation[]; readonly history: History },
  say: (line: string) => void,
): Promise<void> {
  if (violations.length === 0) return;
  await mkdir(DIRECTORY, { recursive: true });
  const file = join(DIRECTORY, `faults-${name}.json`);
  await writeFile(file, JSON.stringify({ violations, history }));
  for (const violation of violations.slice(0, SHOWN_VIOLATIONS)) {
    say(`\n${violation.promise} is broken: ${violation.what}`);
    const { calls, log } = shrink(history, violation);
    const own = new Set(violation.calls);
    for (const call of [...calls].sort((a, b) => a.sent - b.sent).slice(0, SHOWN_CALLS))
      say(`  ${own.has(call.id) ? '>' : ' '} ${line(call)}`);
    const revisions = new Set(violation.revisions);
    for (const record of log.filter(({ revision }) => revisions.has(revision)))
      say(
        `  > revision ${record.revision} at ${record.time}: ${record.kind} ${record.leaseId} ${record.body.slice(0, 300)}`,
      );
  }
  if (violations.length > SHOWN_VIOLATIONS) say(`\nand ${violations.length - SHOWN_VIOLATIONS} more`);
  say(`\nthe whole history: ${file}\n`);
}

function line({ id, kind, by, of, sent, answered, asked, told, fault }: Call): string {
  const ms = (moment: number | null) => (moment === null ? '…' : (moment / 1_000).toFixed(1));
  const answer = told ?? fault ?? 'no answer';
  return `${id} ${ms(sent)}–${ms(answered)} ms ${by} → ${of}: ${kind} ${JSON.stringify(asked)} = ${JSON.stringify(answer)}`.slice(
    0,
    700,
  );
}
