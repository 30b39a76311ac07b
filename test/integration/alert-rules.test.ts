import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parser } from '@prometheus-io/lezer-promql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Coordinator, startCoordinator } from '../../src/coordinator.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';

/** The alert rules against the metrics that a running coordinator has, the codes that there are, and the guide. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const RULES = 'docs/alerts/writ.rules.yaml';
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

const file = z.strictObject({
  groups: z.array(
    z.strictObject({
      name: z.string().regex(/^writ-[a-z]+$/),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Writ[A-Za-z]+$/),
          expr: z.string(),
          for: z
            .string()
            .regex(/^\d+[smh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
          annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook: z.string() }),
        }),
      ),
    }),
  ),
});

type Rule = z.infer<typeof file>['groups'][number]['rules'][number];

let directory: string;
let coordinator: Coordinator;
let rules: readonly Rule[];
/** By name, as the coordinator exposes them: kind, and the labels that the guide names. */
let metrics: ReadonlyMap<string, { readonly kind: string; readonly labels: readonly string[] }>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-alerts-'));
  const env = { WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: directory, WRIT_MAX_CLOCK_SKEW: '0s' };
  coordinator = await startCoordinator(readConfig(env), createLogger('silent'));
  const { auditor } = JSON.parse(await readFile(coordinator.tokensFile, 'utf8')) as { auditor: string };
  const answer = await fetch(`http://${coordinator.http}/metrics`, { headers: { authorization: `Bearer ${auditor}` } });
  const text = await answer.text();
  const guide = await read('docs/operations.md');
  metrics = new Map(
    [...text.matchAll(/^# TYPE (writ_\w+) (\w+)$/gm)].map(([, name = '', kind = '']) => {
      const labels = new RegExp(`^\\| \`${name}\` \\| ${kind} \\| ([^|]*)\\|`, 'm').exec(guide)?.[1] ?? '';
      return [name, { kind, labels: labels.split(',').flatMap((label) => label.trim() || []) }];
    }),
  );
  rules = file.parse(parse(await read(RULES))).groups.flatMap((group) => group.rules);
});

afterAll(async () => {
  await coordinator?.stop();
  await rm(directory, { recursive: true, force: true });
});

/** The histogram that a series belongs to. */
const base = (metric: string): string => metric.replace(/_(bucket|count|sum)$/, '');

/** What an expression asks for. */
interface Selector {
  readonly metric: string;
  readonly labels: readonly { readonly name: string; readonly values: readonly string[] }[];
}

/** Throws where the expression is no PromQL. */
function selectorsOf(expr: string): Selector[] {
  const found: { metric: string; labels: { name: string; values: string[] }[] }[] = [];
  parser.parse(expr).iterate({
    enter({ type, node, from, to }) {
      const text = (name: string): string => {
        const child = node.getChild(name);
        return child === null ? '' : expr.slice(child.from, child.to);
      };
      if (type.isError) throw new Error(`no PromQL at ${from}: ${expr.slice(Math.max(0, from - 20), to + 20)}`);
      if (type.name === 'VectorSelector') found.push({ metric: text('Identifier'), labels: [] });
      if (type.name === 'UnquotedLabelMatcher') {
        const values = text('StringLiteral').slice(1, -1).split('|');
        found.at(-1)?.labels.push({ name: text('LabelName'), values });
      }
    },
  });
  return found;
}

it('are PromQL over metrics and labels that the coordinator has', () => {
  for (const { alert, expr } of rules) {
    const selectors = selectorsOf(expr);
    expect(selectors.length, alert).toBeGreaterThan(0);
    for (const { metric, labels } of selectors) {
      const histogram = metrics.get(base(metric));
      const known = metrics.get(metric) ?? (histogram?.kind === 'histogram' ? histogram : undefined);
      expect(known, `${alert}: ${metric}`).toBeDefined();
      for (const { name } of labels) expect(known?.labels, `${alert}: ${metric}`).toContain(name);
    }
  }
});

it('ask for reasons, causes and outcomes that there are', async () => {
  const codes = await read('docs/reason-codes.md');
  const guide = await read('docs/operations.md');
  const known = new Set([...codes.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code = '']) => code));
  for (const { alert, expr } of rules) {
    for (const { metric, labels } of selectorsOf(expr)) {
      for (const value of labels.flatMap(({ values }) => values)) {
        // What the log and the metrics have in lower case is a code of the guide, or stands in the metric's own row.
        const row = guide.split('\n').find((line) => line.startsWith(`| \`${base(metric)}\``)) ?? '';
        expect(known.has(value.toUpperCase()) || row.includes(`\`${value}\``), `${alert}: ${value}`).toBe(true);
      }
    }
  }
});

it('stand in the guide, each with what to do, and each with a place to read on', async () => {
  const guide = await read('docs/operations.md');
  const rows = [...guide.matchAll(/^\| `(Writ\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$/gm)];
  expect(rows.map(([, alert, severity]) => `${alert} ${severity}`)).toEqual(
    rules.map(({ alert, labels }) => `${alert} ${labels.severity}`),
  );
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { alert, annotations } of rules) {
    const [path = '', anchor = ''] = annotations.runbook.split('#');
    const headings = [...(await read(path)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
    expect(headings, alert).toContain(anchor);
  }
});

const promtool = spawnSync('promtool', ['--version']).error === undefined;

it.skipIf(!promtool)('are right for promtool, and fire when they should (apt-get install prometheus)', () => {
  for (const args of [
    ['check', 'rules', RULES],
    ['test', 'rules', 'test/data/writ.rules.test.yaml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: ROOT, encoding: 'utf8' });
    expect(`${stdout}${stderr}`, args.join(' ')).not.toContain('FAILED');
    expect(status, `${stdout}${stderr}`).toBe(0);
  }
});
